#ifndef SFMAMBA_TESTS_SERVER_PREDICTION_THROUGH_PROTO_H_
#define SFMAMBA_TESTS_SERVER_PREDICTION_THROUGH_PROTO_H_

#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "gtest/gtest.h"
#include "server/prediction/task_handler.h"
#include "server/rpc/to_proto.h"
#include "server/rpc/wire/from_proto.h"

namespace sfmamba::prediction {

// The handler of `params`, a sfmamba.v1 message, which outlives it.
template <typename Params>
std::unique_ptr<const TaskHandler> HandlerOf(const Params& params) {
  TaskParams own;
  const absl::Status status = rpc::FromProto(params, &own);
  EXPECT_TRUE(status.ok()) << status;
  return MakeTaskHandler(own);
}

// A model's result as a caller of sfmamba.v1 sees it: `Answer` is the task's
// alternative, `Proto` its message.
template <typename Answer, typename Proto, typename Params>
Proto AnswerThroughProto(const Params& params,
                         const repository::ModelDirectory& model,
                         const model::Result& result,
                         const image::PictureFrame& frame = {}) {
  const std::unique_ptr<const TaskHandler> handler = HandlerOf(params);
  absl::StatusOr<prediction::Answer> answer =
      EncodeAll(handler->MakeEncoder(model, result, frame).get());
  Proto proto;
  if (answer.ok()) {
    rpc::ToProto(std::get<Answer>(*std::move(answer)), &proto);
  } else {
    ADD_FAILURE() << answer.status();
  }
  return proto;
}

inline repository::ModelDirectory ModelOf(std::vector<std::string> labels) {
  repository::ModelDirectory model;
  model.labels = std::move(labels);
  return model;
}

}  // namespace sfmamba::prediction

#endif  // SFMAMBA_TESTS_SERVER_PREDICTION_THROUGH_PROTO_H_
