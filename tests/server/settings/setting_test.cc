#include "server/settings/setting.h"

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "sfmamba/v1/config.pb.h"

namespace sfmamba::server {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::MessageFactory;

// Calls `visit` with each field of `message` and of its submessages.
void ForEach(const Descriptor& message,
             const std::function<void(const FieldDescriptor&)>& visit) {
  for (int i = 0; i < message.field_count(); ++i) {
    const FieldDescriptor& field = *message.field(i);
    visit(field);
    if (IsGroup(field)) ForEach(*field.message_type(), visit);
  }
}

void ForEachSetting(const std::function<void(const FieldDescriptor&)>& visit) {
  for (const Descriptor* message :
       {v1::Command::descriptor(), v1::ServerConfig::descriptor(),
        v1::ModelConfig::descriptor()}) {
    ForEach(*message, visit);
  }
}

bool HasNumbers(const FieldDescriptor& field) {
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_BOOL:
    case FieldDescriptor::CPPTYPE_ENUM:
    case FieldDescriptor::CPPTYPE_STRING:
      return false;
    default:
      return !IsGroup(field);
  }
}

std::unique_ptr<Message> MessageOf(const FieldDescriptor& field) {
  return std::unique_ptr<Message>(MessageFactory::generated_factory()
                                      ->GetPrototype(field.containing_type())
                                      ->New());
}

// Returns the error of setting `field` to `text`.
std::string ErrorOf(const FieldDescriptor& field, const std::string& text) {
  const std::unique_ptr<Message> message = MessageOf(field);
  absl::Status status = SetFromText(field, text, message.get());
  if (status.ok()) status = CheckRanges(*message);
  return std::string(status.message());
}

const FieldDescriptor& Field(const std::string& name) {
  return *v1::ServerConfig::descriptor()->FindFieldByName(name);
}

const FieldDescriptor& DetectorField(const std::string& name) {
  return *v1::Detector::descriptor()->FindFieldByName(name);
}

TEST(SettingTest, EachHasHelp) {
  ForEachSetting([](const FieldDescriptor& field) {
    EXPECT_FALSE(SettingOf(field).help().empty()) << field.full_name();
  });
}

TEST(SettingTest, EachNumberStatesItsRange) {
  ForEachSetting([](const FieldDescriptor& field) {
    EXPECT_EQ(!SettingOf(field).range().empty(), HasNumbers(field))
        << field.full_name();
  });
}

TEST(SettingTest, EachDefaultIsReadAndInItsRange) {
  ForEachSetting([](const FieldDescriptor& field) {
    const std::string& text = SettingOf(field).default_();
    if (!text.empty()) {
      EXPECT_EQ(ErrorOf(field, text), "") << field.full_name();
    }
  });
}

TEST(SettingTest, EachEndOfARangeIsReadAndBelongsToIt) {
  ForEachSetting([](const FieldDescriptor& field) {
    const std::string& range = SettingOf(field).range();
    if (range.empty() || range == "any") return;
    const size_t to = range.find(" to ");
    if (to != std::string::npos) {
      EXPECT_EQ(ErrorOf(field, range.substr(0, to)), "") << field.full_name();
      EXPECT_EQ(ErrorOf(field, range.substr(to + 4)), "") << field.full_name();
    } else if (absl::StartsWith(range, "at least ")) {
      EXPECT_EQ(ErrorOf(field, range.substr(9)), "") << field.full_name();
    } else {
      EXPECT_EQ(range, "above 0") << field.full_name();
    }
  });
}

TEST(SettingTest, ADefaultInWordsIsNotSet) {
  v1::ServerConfig config;
  SetDefaults(&config);
  EXPECT_EQ(config.decode_threads(), 0);
  EXPECT_EQ(DescribeDefault(DetectorField("channels")),
            "the weights', else 256");
  EXPECT_EQ(DescribeDefault(Field("random_init")), "false");
  EXPECT_EQ(DescribeDefault(Field("trace_endpoint")), "");
}

TEST(SettingTest, DefaultsLeaveWhatIsSet) {
  v1::ServerConfig config;
  config.set_port(0);
  config.mutable_drain_delay()->set_nanos(5);
  config.set_exit_on_load_error(false);
  SetDefaults(&config);
  EXPECT_EQ(config.port(), 0);
  EXPECT_EQ(config.drain_delay().seconds(), 0);
  EXPECT_FALSE(config.exit_on_load_error());
  EXPECT_EQ(config.metrics_port(), 8002);
  EXPECT_EQ(config.drain_timeout().seconds(), 25);
  EXPECT_EQ(config.max_message_bytes(), 64 << 20);
}

TEST(SettingTest, DefaultsAreSetInOneMessageAlone) {
  v1::ModelConfig config;
  SetDefaults(&config);
  EXPECT_EQ(config.task(), v1::ModelConfig::CLASSIFICATION);
  EXPECT_FALSE(config.has_detector());
  v1::Detector detector;
  SetDefaults(&detector);
  ASSERT_EQ(detector.anchor_ratios_size(), 3);
  EXPECT_EQ(detector.anchor_ratios(0), 0.5f);
  EXPECT_EQ(detector.rpn_iou_threshold(), 0.7f);
}

TEST(SettingTest, ATextReplacesTheValue) {
  v1::ServerConfig config;
  config.add_gpus(7);
  config.mutable_drain_delay()->set_nanos(7);
  for (const auto& [name, text] :
       std::vector<std::pair<std::string, std::string>>{
           {"gpus", "0,2"},
           {"drain_delay", "3s"},
           {"max_image_bytes", "3MiB"},
           {"decode_memory_budget_bytes", "12345"},
           {"host", "::1"},
           {"random_init", "true"}}) {
    EXPECT_TRUE(SetFromText(Field(name), text, &config).ok()) << name;
  }
  v1::ServerConfig expected;
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(
      "gpus: [0, 2] drain_delay { seconds: 3 } max_image_bytes: 3145728 "
      "decode_memory_budget_bytes: 12345 host: '::1' random_init: true",
      &expected));
  EXPECT_EQ(config.DebugString(), expected.DebugString());
  constexpr int64_t kMostGibibytes = 8'589'934'591;
  EXPECT_TRUE(SetFromText(Field("decode_memory_budget_bytes"),
                          absl::StrCat(kMostGibibytes, "GiB"), &config)
                  .ok());
  EXPECT_EQ(config.decode_memory_budget_bytes(), kMostGibibytes << 30);
  EXPECT_TRUE(SetFromText(Field("gpus"), "", &config).ok());
  EXPECT_TRUE(config.gpus().empty());
}

TEST(SettingTest, ATextThatIsNoValueSaysWhatIs) {
  for (const auto& [name, text, error] :
       std::vector<std::array<std::string, 3>>{
           {"port", "x", "got \"x\", expected a whole number, 0 to 65535"},
           {"port", "", "got \"\", expected a whole number, 0 to 65535"},
           {"port", "99999999999",
            "got \"99999999999\", expected a whole number, 0 to 65535"},
           {"port", "1 2", "got \"1 2\", expected a whole number, 0 to 65535"},
           {"port", "1MiB",
            "got \"1MiB\", expected a whole number, 0 to 65535"},
           {"gpus", "0,b",
            "got \"0,b\", expected whole numbers such as 1,2, 0 to 1023"},
           {"max_image_bytes", "9999999999GiB",
            "got \"9999999999GiB\", expected a number of bytes such as 64MiB, "
            "1 to 2147483647 bytes"},
           {"drain_delay", "5",
            "got \"5\", expected a duration such as 1.5s, 0s to 24h"},
           {"random_init", "maybe", "got \"maybe\", expected true or false"},
           {"random_init", "1", "got \"1\", expected true or false"}}) {
    EXPECT_EQ(ErrorOf(Field(name), text), error);
  }
}

TEST(SettingTest, AValueOutOfItsRangeIsNamedWithGotAndExpected) {
  for (const auto& [name, text, error] :
       std::vector<std::array<std::string, 3>>{
           {"port", "-1", "port: got -1, expected 0 to 65535"},
           {"gpus", "0,-1", "gpus[1]: got -1, expected 0 to 1023"},
           {"max_image_side", "65536",
            "max_image_side: got 65536, expected 1 to 65535 pixels"},
           {"decode_memory_budget_bytes", "1023KiB",
            "decode_memory_budget_bytes: got 1047552, expected at least 1MiB"},
           {"drain_delay", "-1ms", "drain_delay: got -1ms, expected 0s to 24h"},
           {"decode_timeout", "999us",
            "decode_timeout: got 999us, expected 1ms to 24h"},
           {"device", "gpu",
            "device: got \"gpu\", expected auto, cpu or cuda"}}) {
    EXPECT_EQ(ErrorOf(Field(name), text), error);
  }
  EXPECT_EQ(ErrorOf(DetectorField("anchor_ratios"), "1,0"),
            "anchor_ratios[1]: got 0, expected above 0");
  EXPECT_EQ(ErrorOf(DetectorField("mask_threshold"), "nan"),
            "mask_threshold: got nan, expected 0 to 1");
  EXPECT_EQ(ErrorOf(*v1::Input::descriptor()->FindFieldByName("mean"), "inf"),
            "mean[0]: got inf, expected a finite number");
}

TEST(SettingTest, GroupsAreLookedInto) {
  v1::ModelConfig config;
  config.mutable_batching()->set_max_queue_items(-3);
  EXPECT_EQ(CheckRanges(config).message(),
            "batching.max_queue_items: got -3, expected at least 1 images");
  config.clear_batching();
  config.mutable_detector()->add_box_stds()->add_values(-1);
  EXPECT_EQ(CheckRanges(config).message(),
            "detector.box_stds[0].values[0]: got -1, expected above 0");
}

TEST(SettingTest, ANumberThatNamesNoValueOfAnEnumIsRefused) {
  v1::ModelConfig config;
  config.set_task(v1::ModelConfig::Task(9));
  EXPECT_EQ(CheckRanges(config).message(),
            "task: got 9, expected CLASSIFICATION, DETECTION or SEGMENTATION");
}

}  // namespace
}  // namespace sfmamba::server
