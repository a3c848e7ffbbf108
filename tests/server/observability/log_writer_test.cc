#include "server/observability/log_writer.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "tests/testing/patience.h"

namespace sfmamba::observability {
namespace {

// Writes to a pipe that accepts 4096 bytes until it is read.
class LogWriterTest : public testing::Test {
 protected:
  LogWriterTest() {
    signal(SIGPIPE, SIG_IGN);
    EXPECT_EQ(pipe(pipe_), 0);
    EXPECT_GT(fcntl(pipe_[1], F_SETPIPE_SZ, 4096), 0);
  }
  ~LogWriterTest() override {
    CloseReader();
    close(pipe_[1]);
  }

  int writer() const { return pipe_[1]; }
  void CloseReader() {
    if (pipe_[0] >= 0) close(pipe_[0]);
    pipe_[0] = -1;
  }
  // Reads until `size` bytes have arrived.
  std::string Read(size_t size) {
    TimeLimit limit("the lines");
    std::string text(size, '\0');
    for (size_t done = 0; done < size;) {
      const ssize_t n = read(pipe_[0], &text[done], size - done);
      if (n <= 0) return text.substr(0, done);
      done += n;
    }
    return text;
  }

  int pipe_[2];
};

TEST_F(LogWriterTest, WritesLinesInTheirOrder) {
  LogWriter writer(this->writer(), {});
  writer.Write("one\n", false);
  writer.Write("two\n", true);
  EXPECT_EQ(Read(8), "one\ntwo\n");
  EXPECT_TRUE(writer.Flush(kPatience));
  EXPECT_EQ(writer.TakeDropped(), 0);
}

TEST_F(LogWriterTest, APipeThatNobodyReadsBlocksNobodyAndLosesNoQueuedLine) {
  const std::string line = std::string(99, 'x') + "\n";
  LogWriter::Options options;
  options.max_bytes = 10000;
  LogWriter writer(this->writer(), options);
  for (int i = 0; i < 1000; ++i) writer.Write(line, false);
  EXPECT_FALSE(writer.Flush(absl::ZeroDuration()));
  const int64_t dropped = writer.TakeDropped();
  EXPECT_GT(dropped, 0);
  EXPECT_EQ(writer.TakeDropped(), 0);
  writer.Write("urgent\n", true);
  EXPECT_EQ(writer.TakeDropped(), 0);
  std::string expected;
  for (int i = 0; i < 1000 - dropped; ++i) expected += line;
  expected += "urgent\n";
  EXPECT_EQ(Read(expected.size()), expected);
  EXPECT_TRUE(writer.Flush(kPatience));
}

TEST_F(LogWriterTest, WhoFlushesWaitsNoLongerThanUntilTheLastLine) {
  LogWriter writer(this->writer(), {});
  // The line is longer than the pipe accepts.
  writer.Write(std::string(10'000, 'x'), false);
  std::thread flusher(
      [&] { EXPECT_TRUE(writer.Flush(absl::InfiniteDuration())); });
  EXPECT_EQ(Read(10'000).size(), 10'000);
  Join(flusher, "the end of Flush()");
}

TEST_F(LogWriterTest, EndsWhileNobodyReads) {
  TimeLimit limit("the end of the writer");
  LogWriter writer(this->writer(), {});
  for (int i = 0; i < 1000; ++i) writer.Write(std::string(1000, 'x'), false);
}

TEST_F(LogWriterTest, WithoutAReaderLinesAreDropped) {
  LogWriter writer(this->writer(), {});
  CloseReader();
  writer.Write("lost\n", true);
  EXPECT_TRUE(writer.Flush(kPatience));
  EXPECT_EQ(writer.TakeDropped(), 1);
}

}  // namespace
}  // namespace sfmamba::observability
