#include "model/engine/slot_thread.h"

#include <stdexcept>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "tests/testing/patience.h"

namespace sfmamba::engine {
namespace {

// Tells by which threads it was made, run and destroyed.
class TellingSlot : public BatchSlot {
 public:
  explicit TellingSlot(std::vector<std::thread::id>* threads)
      : threads_(threads) {
    Tell();
  }
  ~TellingSlot() override { Tell(); }

  absl::Status Run(absl::Span<const model::ModelInput> images,
                   absl::Span<model::Result> results,
                   model::RunInfo*) override {
    Tell();
    if (images[0].pixels == nullptr) return absl::InternalError("no pixels");
    if (images[0].height == 0) throw std::runtime_error("no height");
    results[0] =
        model::Classification{{static_cast<float>(images[0].pixels[0])}, {}};
    return absl::OkStatus();
  }
  absl::Status health() const override {
    return absl::InternalError("it told");
  }

 private:
  void Tell() { threads_->push_back(std::this_thread::get_id()); }

  std::vector<std::thread::id>* const threads_;
};

class SlotThreadTest : public testing::Test {
 protected:
  std::unique_ptr<SlotThread> MakeSlot() {
    return std::make_unique<SlotThread>(
        [this] { return std::make_unique<TellingSlot>(&threads_); });
  }
  // Of an image of this one pixel.
  static model::ModelInput Image(const uint8_t* pixel) {
    model::ModelInput image;
    image.height = image.width = 1;
    image.pixels = pixel;
    return image;
  }

  std::vector<std::thread::id> threads_;
  model::RunInfo info_;
};

TEST_F(SlotThreadTest, OneThreadDoesEverythingWhoeverCalls) {
  auto slot = MakeSlot();
  for (uint8_t pixel = 0; pixel < 3; ++pixel) {
    std::thread caller([&] {
      model::Result result;
      EXPECT_TRUE(
          slot->Run({Image(&pixel)}, absl::MakeSpan(&result, 1), &info_).ok());
      EXPECT_EQ(std::get<model::Classification>(result).logits[0], pixel);
    });
    Join(caller, "the slot's answer");
  }
  slot.reset();
  ASSERT_EQ(threads_.size(), 5);  // Made, run three times, destroyed.
  for (const std::thread::id& thread : threads_) {
    EXPECT_EQ(thread, threads_[0]);
    EXPECT_NE(thread, std::this_thread::get_id());
  }
}

TEST_F(SlotThreadTest, HandsOnWhatTheSlotSays) {
  const auto slot = MakeSlot();
  model::Result result;
  EXPECT_EQ(
      slot->Run({Image(nullptr)}, absl::MakeSpan(&result, 1), &info_).message(),
      "no pixels");
  EXPECT_EQ(slot->health().message(), "it told");
}

TEST_F(SlotThreadTest, HandsOnWhatTheSlotThrows) {
  const auto slot = MakeSlot();
  const uint8_t pixel = 7;
  model::ModelInput image = Image(&pixel);
  image.height = 0;
  model::Result result;
  EXPECT_THROW(
      slot->Run({image}, absl::MakeSpan(&result, 1), &info_).IgnoreError(),
      std::runtime_error);
  EXPECT_TRUE(
      slot->Run({Image(&pixel)}, absl::MakeSpan(&result, 1), &info_).ok());
}

TEST_F(SlotThreadTest, ASlotThatCannotBeMadeLeavesNoThread) {
  EXPECT_THROW(SlotThread([]() -> std::unique_ptr<BatchSlot> {
                 throw std::runtime_error("no stream");
               }),
               std::runtime_error);
}

}  // namespace
}  // namespace sfmamba::engine
