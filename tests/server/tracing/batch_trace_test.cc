#include "server/tracing/batch_trace.h"

#include <iterator>
#include <memory>
#include <vector>

#include "gtest/gtest.h"

namespace sfmamba::tracing {
namespace {

class BatchTraceTest : public testing::Test {
 protected:
  // Returns a traced request whose trace has the ID {0, low}.
  std::shared_ptr<const RequestTrace> Request(uint64_t low) {
    observability::TraceContext context;
    context.trace = {0, low};
    return std::make_shared<RequestTrace>(
        context, "", absl::UnixEpoch(), absl::UnixEpoch() + absl::Hours(1),
        [this](std::vector<Span> added) {
          std::move(added.begin(), added.end(), std::back_inserter(spans_));
        });
  }

  std::vector<Span> spans_;
};

TEST_F(BatchTraceTest, IsOneSpanWithLinksToAllItsImages) {
  const auto first = Request(1), last = Request(2);
  BatchTrace batch;
  batch.AddImage({first, 11});
  batch.AddImage({});
  batch.AddImage({last, 12});
  batch.AddImage({last, 13});
  const SpanContext context = batch.context();
  EXPECT_FALSE(context.empty());
  batch.End(absl::UnixEpoch(), absl::UnixEpoch() + absl::Seconds(1),
            {{"sfmamba.batch_size", 4}});
  ASSERT_EQ(spans_.size(), 1);
  const Span& span = spans_[0];
  EXPECT_STREQ(span.name, "batch");
  EXPECT_EQ(span.context.span, context.span);
  EXPECT_EQ(span.context.trace, last->rpc().trace);
  EXPECT_EQ(span.parent, last->rpc().span);
  EXPECT_EQ(span.start, absl::UnixEpoch() + absl::Hours(1));
  EXPECT_EQ(span.end - span.start, absl::Seconds(1));
  ASSERT_EQ(span.links.size(), 3);
  EXPECT_EQ(span.links[0].trace, first->rpc().trace);
  EXPECT_EQ(span.links[0].span, 11);
  EXPECT_EQ(span.links[2].trace, last->rpc().trace);
  EXPECT_EQ(span.links[2].span, 13);
  EXPECT_EQ(span.attributes.size(), 1);
}

TEST_F(BatchTraceTest, OfRequestsThatAreNotTracedThereIsNone) {
  BatchTrace batch;
  batch.AddImage({});
  EXPECT_TRUE(batch.context().empty());
  batch.End(absl::UnixEpoch(), absl::UnixEpoch(), {});
  EXPECT_TRUE(spans_.empty());
}

}  // namespace
}  // namespace sfmamba::tracing
