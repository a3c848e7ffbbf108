// Tests `sfmamba bench` with a server in this process: the requests, the
// output, the written files and the exit code. load_generator_test.cc tests the
// measured numbers.
#include "client/commands/bench/bench_command.h"

#include <atomic>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "client/commands/inputs.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/command_fixture.h"
#include "tests/client/commands_testing.h"
#include "tests/client/fake_vision_server.h"
#include "tests/server/picture.h"

namespace sfmamba::client {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class BenchTest : public CommandFixture {};

TEST_F(BenchTest, MeasuresFilesAndTensors) {
  const std::string a = WriteFile("a.jpg", "a");
  const Outcome files =
      Invoke(RunBench, {ServerFlag(), a, "--requests=20", "--warmup=0"});
  EXPECT_EQ(files.exit_code, kExitOk) << files.err;
  EXPECT_THAT(
      files.out,
      AllOf(StartsWith("closed loop, 16 in flight, 1 thread(s), 1 "
                       "channel(s), measured for "),
            HasSubstr(" requests/s in time: 100.0 % of 20\n"),
            HasSubstr("answers            20  OK\n"),
            HasSubstr("batch size   4.00 mean\n"), Not(HasSubstr("not sent"))));
  const Outcome tensors = Invoke(
      RunBench, {ServerFlag(), "--tensor=uint8", "--images=3", "--requests=20",
                 "--warmup=0", "--json", "--rate=2000"});
  EXPECT_EQ(tensors.exit_code, kExitOk) << tensors.err;
  EXPECT_THAT(tensors.out, HasSubstr(R"("images": 60, )"));
  EXPECT_THAT(tensors.out, HasSubstr(R"("codes": {"OK": 20})"));
  EXPECT_THAT(tensors.out, HasSubstr(R"("p99.9": )"));
}

TEST_F(BenchTest, FailsIfNothingWasAnswered) {
  const Outcome outcome = Invoke(RunBench, {ServerFlag(), WriteFile("b", "bad"),
                                            "--requests=3", "--warmup=0"});
  EXPECT_EQ(outcome.exit_code, kExitRpcError);
  EXPECT_THAT(outcome.out,
              HasSubstr("3  INVALID_ARGUMENT (IMAGE_FORMAT_UNSUPPORTED)"));
}

TEST_F(BenchTest, FailsIfThereIsNoServer) {
  const Outcome outcome =
      Invoke(RunBench, {"--server=127.0.0.1:1", WriteFile("a.jpg", "a")});
  EXPECT_EQ(outcome.exit_code, kExitRpcError);
  EXPECT_EQ(outcome.err,
            "sfmamba: UNAVAILABLE: nothing listens at 127.0.0.1:1\n");
  EXPECT_EQ(outcome.out, "");
}

TEST_F(BenchTest, EachChannelIsAConnection) {
  const Outcome outcome = Invoke(
      RunBench, {ServerFlag(), WriteFile("a.jpg", "a"), "--requests=40",
                 "--warmup=0", "--channels=3", "--threads=2", "--rate=4000"});
  EXPECT_EQ(outcome.exit_code, kExitOk) << outcome.err;
  EXPECT_EQ(server_.connection_count(), 3);
  EXPECT_EQ(server_.call_count(), 40);
}

TEST_F(BenchTest, WhatIsNotSentIsShown) {
  server_.Hang();
  const Outcome outcome =
      Invoke(RunBench, {ServerFlag(), WriteFile("a.jpg", "a"), "--requests=9",
                        "--warmup=0", "--rate=1e6", "--max_in_flight=4",
                        "--deadline=3s"});
  EXPECT_EQ(outcome.exit_code, kExitRpcError);
  EXPECT_THAT(outcome.out,
              AllOf(HasSubstr("answers             4  DEADLINE_EXCEEDED\n"),
                    HasSubstr("not sent            5  --max_in_flight was "
                              "reached\n"),
                    HasSubstr("in flight    4 at most\n")));
}

TEST_F(BenchTest, JsonHasTheSetting) {
  const Outcome outcome =
      Invoke(RunBench, {ServerFlag(), WriteFile("a.jpg", "a"), "--requests=4",
                        "--warmup=0", "--rate=2000", "--burst_factor=5",
                        "--burst_period=10ms", "--seed=7", "--deadline=20s",
                        "--priority=normal", "--threads=2", "--json"});
  EXPECT_EQ(outcome.exit_code, kExitOk) << outcome.err;
  EXPECT_THAT(
      outcome.out,
      HasSubstr(
          R"("deadline_ms": 20000, "loop": "open", "threads": 2, )"
          R"("channels": 1, "warmup_s": 0, "seed": 7, "max_in_flight": 65536, )"
          R"("rate": 2000, "burst_factor": 5, "burst_period_s": 0.01, )"
          R"("method": "classify", "model": "", "priority": "normal", )"
          R"("input": "encoded", "images_per_request": 1, )"));
  EXPECT_THAT(
      outcome.out,
      HasSubstr(R"("requests": 4, "sent": 4, "not_sent": )"
                R"({"over_max_in_flight": 0, "past_deadline": 0}, )"
                R"("in_time": 4, "late": 0, "failed": 0, "codes": {"OK": 4})"));
}

TEST_F(BenchTest, AWrittenTraceIsTheSameForTheSameSeed) {
  const std::string a = WriteFile("a.jpg", "a"), b = WriteFile("b.jpg", "b");
  std::vector<std::string> texts;
  for (const char* seed : {"--seed=1", "--seed=1", "--seed=2"}) {
    const std::string path = WriteFile("trace.tsv", "");
    const Outcome outcome =
        Invoke(RunBench, {ServerFlag(), a, b, "--rate=100", "--duration=1s",
                          seed, absl::StrCat("--write_trace=", path)});
    EXPECT_EQ(outcome.exit_code, kExitOk) << outcome.err;
    texts.push_back(*ReadFile(path));
  }
  EXPECT_EQ(texts[0], texts[1]);
  EXPECT_NE(texts[0], texts[2]);
  EXPECT_THAT(texts[0], HasSubstr(absl::StrCat("ns\tclassify\t", b,
                                               "\t10s\t-\tclassify\n")));
  EXPECT_EQ(server_.call_count(), 0);
}

// The first command writes a trace of the requests that its flags describe. It
// sends nothing. The second command reads the trace and must send these
// requests.
TEST_F(BenchTest, AWrittenTraceIsSentWhole) {
  const std::string a = WriteFile("a.jpg", "a"), b = WriteFile("b.jpg", "b");
  const std::string path = WriteFile("whole.tsv", "");
  Invoke(RunBench, {a, b, "--rate=2000", "--requests=30", "--warmup=0",
                    absl::StrCat("--write_trace=", path)});
  const Outcome outcome =
      Invoke(RunBench, {ServerFlag(), absl::StrCat("--trace=", path),
                        "--warmup=0", "--speed=2"});
  EXPECT_EQ(outcome.exit_code, kExitOk) << outcome.err;
  EXPECT_EQ(server_.call_count(), 30);
  EXPECT_THAT(outcome.out,
              StartsWith(absl::StrCat("trace ", path, " at 2x, ")));
  EXPECT_THAT(outcome.out, HasSubstr("answers            30  OK\n"));
}

TEST(BenchTraceTest, HasMethodsPrioritiesAndClasses) {
  absl::Mutex mu;
  std::multiset<std::string> asked;
  const auto note = [&](const auto& request) {
    absl::MutexLock lock(&mu);
    asked.insert(absl::StrCat(
        request.model(), " ",
        v1::RequestOptions::Priority_Name(request.options().priority()), " ",
        request.images(0).encoded()));
  };
  FakeVisionServer server(
      [&](const v1::ClassifyRequest& request, v1::ClassifyResponse* response) {
        note(request);
        return AnswerCup(request, response);
      },
      [&](const v1::DetectRequest& request, v1::DetectResponse*) {
        note(request);
        return FakeError(grpc::StatusCode::RESOURCE_EXHAUSTED, "full",
                         "QUEUE_FULL");
      });
  WriteFile("one.jpg", "1");
  WriteFile("two.jpg", "2");
  const std::string trace = WriteFile("mixed.tsv",
                                      "0\tclassify/m\tone.jpg\t30s\thigh\n"
                                      "1ms\tdetect\ttwo.jpg\t30s\tlow\tbulk\n"
                                      "2ms\tclassify/m\tone.jpg\t30s\thigh\n");
  const std::vector<std::string> arguments = {
      absl::StrCat("--server=", server.address()),
      absl::StrCat("--trace=", trace),
      absl::StrCat("--pictures=", testing::TempDir()), "--warmup=0"};
  const Outcome text = Invoke(RunBench, arguments);
  EXPECT_EQ(text.exit_code, kExitOk) << text.err;
  EXPECT_THAT(asked, ElementsAre(" LOW 2", "m HIGH 1", "m HIGH 1"));
  EXPECT_THAT(text.out,
              testing::ContainsRegex("classify/m high +2 +2  100.0 "));
  EXPECT_THAT(text.out, testing::ContainsRegex("bulk +1 +0 +0.0 +0 +1 "));
  std::vector<std::string> json_arguments = arguments;
  json_arguments.push_back("--json");
  const Outcome json = Invoke(RunBench, json_arguments);
  EXPECT_THAT(json.out,
              HasSubstr(R"({"class": "bulk", "requests": 1, "sent": 1, )"));
  EXPECT_THAT(
      json.out,
      HasSubstr(R"json("codes": {"RESOURCE_EXHAUSTED (QUEUE_FULL)": 1})json"));
}

TEST_F(BenchTest, RefusesWhatItCannotDo) {
  const std::string a = WriteFile("a.jpg", "a");
  const std::string trace =
      absl::StrCat("--trace=", WriteFile("t.tsv", "5s\tclassify\ta.jpg\n"));
  const std::string bad_trace =
      absl::StrCat("--trace=", WriteFile("bad.tsv", "5s classify a.jpg\n"));
  for (const std::vector<std::string>& arguments :
       std::vector<std::vector<std::string>>{
           {},
           {a, "--tensor=fp32"},
           {"--tensor=fp64"},
           {a, "--images=65"},
           {a, "--images=0"},
           {a, "--rate=-1"},
           {a, "--rate=1e9"},
           {a, "--duration=0"},
           {a, "--duration=inf"},
           {a, "--deadline=0"},
           {a, "--requests=-1"},
           {a, "--concurrency=0"},
           {a, "--channels=0"},
           {a, "--threads=0"},
           {a, "--max_in_flight=0"},
           {a, "--rate=1", "--burst_factor=0.5"},
           {a, "--rate=1", "--burst_factor=2", "--burst_period=0"},
           {a, "--burst_factor=2"},
           {a, "--method=guess"},
           {a, "--priority=urgent"},
           {a, "--priority=-"},
           {a, "--speed=2"},
           {a, "--write_trace=/tmp/never"},
           {a, "--rate=1", "--write_trace=/no/such/folder/trace"},
           {"a,b.jpg", "--rate=1", "--write_trace=/tmp/never"},
           {trace, a},
           {trace, "--rate=1"},
           {trace, "--speed=0"},
           {trace, "--warmup=6s"},
           // At this speed, the whole trace lies in the warm-up.
           {trace, "--speed=10"},
           {bad_trace},
           {"--trace=/no/such/file.tsv"},
           {"/no/such/file.jpg"}}) {
    const Outcome outcome = Invoke(RunBench, arguments);
    EXPECT_EQ(outcome.exit_code, kExitUsage) << outcome.err;
    EXPECT_NE(outcome.err, "");
    EXPECT_EQ(outcome.out, "");
  }
}

TEST(BenchMethodTest, AsksForTheMethod) {
  std::atomic<int> detected{0}, segmented{0};
  FakeVisionServer server(
      nullptr,
      [&](const v1::DetectRequest& request, v1::DetectResponse* response) {
        detected +=
            request.images_size() == 2 &&
            request.params().mask_encoding() == v1::DetectParams::COCO_RLE;
        response->add_results();
        response->add_results();
        return grpc::Status::OK;
      },
      [&](const v1::SegmentRequest& request, v1::SegmentResponse* response) {
        segmented += request.images_size();
        response->add_results();
        return grpc::Status::OK;
      });
  const std::string flag = absl::StrCat("--server=", server.address());
  const std::string a = WriteFile("a.jpg", "a");
  Outcome outcome = Invoke(RunBench, {flag, a, "--method=detect", "--images=2",
                                      "--requests=5", "--warmup=0", "--json"});
  EXPECT_EQ(outcome.exit_code, kExitOk) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr(R"("method": "detect", )"));
  EXPECT_THAT(outcome.out, HasSubstr(R"("images": 10, )"));
  EXPECT_EQ(detected, 5);
  outcome = Invoke(RunBench,
                   {flag, a, "--method=segment", "--requests=5", "--warmup=0"});
  EXPECT_EQ(outcome.exit_code, kExitOk) << outcome.err;
  EXPECT_EQ(segmented, 5);
}

// The request's tensor must have the size and the type of the model's input.
TEST(BenchTensorTest, HasTheModelsSize) {
  for (const bool fp32 : {false, true}) {
    std::atomic<int> wrong{0};
    FakeVisionServer server([&](const v1::ClassifyRequest& request,
                                v1::ClassifyResponse* response) {
      const v1::Tensor& tensor = request.images(0).tensor();
      const bool right =
          tensor.shape_size() == 3 && tensor.shape(0) == 3 &&
          tensor.shape(1) == 8 && tensor.shape(2) == 6 &&
          tensor.data_type() == (fp32 ? v1::Tensor::FP32 : v1::Tensor::UINT8) &&
          tensor.data().size() == 3 * 8 * 6 * (fp32 ? 4 : 1);
      if (!right) ++wrong;
      return AnswerCup(request, response);
    });
    server.SetModels({FakeModel("m")});
    const Outcome outcome =
        Invoke(RunBench, {absl::StrCat("--server=", server.address()),
                          fp32 ? "--tensor=fp32" : "--tensor=uint8",
                          "--requests=2", "--warmup=0"});
    EXPECT_EQ(outcome.exit_code, kExitOk) << outcome.err;
    EXPECT_EQ(wrong, 0);
  }
}

TEST(BenchTensorTest, PicturesAreResizedForTheirModel) {
  std::atomic<int> right{0};
  FakeVisionServer server(
      [&](const v1::ClassifyRequest& request, v1::ClassifyResponse* response) {
        right += request.images(0).tensor().data().size() == 3 * 8 * 8;
        return AnswerCup(request, response);
      });
  v1::Model model = FakeModel("m");
  model.mutable_input()->mutable_buckets(0)->set_width(8);
  model.mutable_input()->set_resize("center_crop");
  model.mutable_input()->set_resize_size(10);
  server.SetModels({model});
  std::vector<std::string> arguments = {
      absl::StrCat("--server=", server.address()), "--requests=2", "--warmup=0",
      "--resize",
      WriteFile("a.png", server::EncodePng(server::Gradient(60, 45)))};
  const Outcome outcome = Invoke(RunBench, arguments);
  EXPECT_EQ(outcome.exit_code, kExitOk) << outcome.err;
  EXPECT_EQ(right, 2);
  arguments.back() = WriteFile("b", "bad");
  const Outcome bad = Invoke(RunBench, arguments);
  EXPECT_EQ(bad.exit_code, kExitRpcError);
  EXPECT_THAT(bad.err, HasSubstr("/b': this is "));
  EXPECT_EQ(bad.out, "");
  for (const char* other : {"--method=detect", "--tensor=uint8"}) {
    arguments.back() = other;
    const Outcome refused = Invoke(RunBench, arguments);
    EXPECT_EQ(refused.exit_code, kExitUsage);
    EXPECT_THAT(refused.err, HasSubstr("--resize: expected files"));
  }
}

// Without --model, the tensor must have the size of the model that the server
// will choose. If the method has several models, this is the default model.
TEST(BenchTensorTest, WithoutANameTheDefaultModelIsAsked) {
  std::atomic<int> right{0};
  FakeVisionServer server([&](const v1::ClassifyRequest& request,
                              v1::ClassifyResponse* response) {
    right +=
        request.model().empty() && request.images(0).tensor().shape(1) == 20;
    return AnswerCup(request, response);
  });
  std::vector<v1::Model> models = {FakeModel("models/d/versions/1"),
                                   FakeModel("models/a/versions/1"),
                                   FakeModel("models/b/versions/1")};
  models[0].set_task(v1::Model::DETECTION);
  models[2].mutable_input()->mutable_buckets(0)->set_height(20);
  server.SetModels(models);
  const std::vector<std::string> arguments = {
      absl::StrCat("--server=", server.address()), "--tensor=uint8",
      "--requests=2", "--warmup=0"};
  const Outcome several = Invoke(RunBench, arguments);
  EXPECT_EQ(several.exit_code, kExitRpcError);
  EXPECT_THAT(several.err, HasSubstr("the server has 2 models for the task "
                                     "CLASSIFICATION, expected one"));
  models[2].set_default_for_task(true);
  models.push_back(models[2]);  // The model has a second version.
  models[3].set_name("models/b/versions/2");
  server.SetModels(models);
  const Outcome outcome = Invoke(RunBench, arguments);
  EXPECT_EQ(outcome.exit_code, kExitOk) << outcome.err;
  EXPECT_EQ(right, 2);
}

}  // namespace
}  // namespace sfmamba::client
