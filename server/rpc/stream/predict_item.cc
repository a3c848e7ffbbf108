#include "server/rpc/stream/predict_item.h"

#include <cstdint>

namespace sfmamba::rpc {

class PredictItem::ItemCall final : public call::Call {
 public:
  // If `serving` is an error, the request is answered with this error.
  ItemCall(PredictItem* item, absl::Status serving)
      : item_(item), serving_(std::move(serving)) {
    info_ = item->info_;
  }
  ~ItemCall() override {
    if (item_ == nullptr) return;
    Finish(absl::InternalError("the request was not answered"), nullptr, [] {});
  }

  // This method is not called for a prediction. A prediction takes the size of
  // its request from call::Pictures::bytes() instead.
  int64_t request_bytes() const override { return 0; }
  // The caller was checked when the stream was opened.
  absl::Status Admit(security::Scope) override { return absl::OkStatus(); }
  absl::Status Read(call::Message*) override {
    return absl::UnimplementedError("only predictions are streamed");
  }
  std::unique_ptr<call::Pictures> ReadPictures(
      int max_images, call::Message* request) override {
    auto pictures = item_->ReadPictures(max_images, request);
    if (!serving_.ok()) pictures->set_status(serving_);
    return pictures;
  }
  void OnCancel(absl::AnyInvocable<void()> cancelled) override {
    item_->cancellation_.OnCancel(std::move(cancelled));
  }
  call::ResultSink& results() override { return results_; }
  void Finish(const absl::Status& status, call::Message* rest,
              absl::AnyInvocable<void()> sent) override {
    PredictItem* const item = std::exchange(item_, nullptr);
    item->sent_ = std::move(sent);
    item->Answer(status, &results_, rest);
    item->End();
  }

 private:
  PredictItem* item_;  // Null after Finish().
  const absl::Status serving_;
  call::EncodedResults results_;
};

void PredictItem::Begin(const absl::Status& serving) {
  handler_(env_, counted_as_, std::make_unique<ItemCall>(this, serving));
}

}  // namespace sfmamba::rpc
