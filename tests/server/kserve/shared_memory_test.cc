#include "server/kserve/shared_memory.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <fstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "server/errors/error.h"
#include "tests/server/kserve/shared_object.h"
#include "tests/testing/patience.h"

namespace sfmamba::kserve {
namespace {

constexpr int64_t kMost = 1 << 20;

// "" if the status is OK, or else the field that it names.
std::string FieldOf(const absl::Status& status) {
  if (status.ok()) return "";
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  return server::GetErrorDetail(status).field;
}

ParameterMap Parameters(const std::string& region, int64_t bytes,
                        int64_t offset = 0) {
  ParameterMap map;
  map["shared_memory_region"].set_string_param(region);
  map["shared_memory_byte_size"].set_int64_param(bytes);
  if (offset != 0) map["shared_memory_offset"].set_int64_param(offset);
  return map;
}

std::string Read(const SharedMemory::Tensor& tensor) {
  std::string data(tensor.bytes(), '?');
  const absl::Status status =
      tensor.Read(reinterpret_cast<uint8_t*>(data.data()));
  EXPECT_TRUE(status.ok()) << status;
  return data;
}

// Opening a pipe to read waits for somebody who writes.
TEST(SharedMemoryTest, RefusesAPipeAtOnce) {
  SharedObject object("0123456789");
  const std::string pipe = object.key() + "_pipe";
  const std::string path = "/dev/shm" + pipe;
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  auto request = object.Request("mine", 4);
  request.set_key(pipe);
  SharedMemory memory(kMost);
  TimeLimit limit("the refusal");
  EXPECT_EQ(FieldOf(memory.Register(request)), "key");
  EXPECT_EQ(unlink(path.c_str()), 0);
}

// While a process holds a lease of an object, the kernel makes others wait who
// open it to write.
TEST(SharedMemoryTest, DoesNotWaitForALease) {
  std::signal(SIGIO, SIG_IGN);  // Asks the holder to give its lease up.
  inference::SystemSharedMemoryRegisterRequest request;
  request.set_name("mine");
  request.set_key(absl::StrCat("sfmamba_test_lease_", getpid()));
  request.set_byte_size(4);
  const std::string path = "/dev/shm/" + request.key();
  std::ofstream(path) << "0123456789";
  const int holder = open(path.c_str(), O_RDONLY);
  ASSERT_EQ(fcntl(holder, F_SETLEASE, F_RDLCK), 0);
  SharedMemory memory(kMost);
  {
    TimeLimit limit("the registration");
    EXPECT_EQ(FieldOf(memory.Register(request)), "");
  }
  EXPECT_EQ(unlink(path.c_str()), 0);
  const auto tensor = memory.Find(Parameters("mine", 4));
  ASSERT_TRUE(tensor.ok()) << tensor.status();
  EXPECT_EQ(Read(*tensor), "0123");
  EXPECT_FALSE(tensor->Write("abcd").ok());
  close(holder);
}

TEST(SharedMemoryTest, ReadsAndWritesAPartOfARegion) {
  SharedObject object("0123456789");
  SharedMemory memory(kMost);
  ASSERT_EQ(FieldOf(memory.Register(object.Request("mine", 8, 2))), "");
  const auto tensor = memory.Find(Parameters("mine", 3, 4));
  ASSERT_TRUE(tensor.ok()) << tensor.status();
  EXPECT_EQ(Read(*tensor), "678");
  EXPECT_TRUE(tensor->Write("ab").ok());
  EXPECT_EQ(object.Bytes(), "012345ab89");
  EXPECT_FALSE(tensor->Write("abcd").ok());
  EXPECT_EQ(object.Bytes(), "012345ab89");
  EXPECT_TRUE(tensor->Write("abc").ok());
  EXPECT_EQ(object.Bytes(), "012345abc9");
}

TEST(SharedMemoryTest, DescribesWhatIsRegistered) {
  SharedObject object("0123456789");
  SharedMemory memory(kMost);
  for (const char* name : {"a", "b"}) {
    ASSERT_EQ(FieldOf(memory.Register(object.Request(name, 8, 2))), "");
  }
  EXPECT_EQ(memory.Describe("").regions().size(), 2);
  EXPECT_EQ(memory.Describe("c").regions().size(), 0);
  const auto b = memory.Describe("b").regions().at("b");
  EXPECT_EQ(b.name(), "b");
  EXPECT_EQ(b.key(), object.key());
  EXPECT_EQ(b.offset(), 2);
  EXPECT_EQ(b.byte_size(), 8);
  memory.Unregister("c");  // No error.
  memory.Unregister("a");
  EXPECT_EQ(memory.Describe("").regions().size(), 1);
  memory.Unregister("");
  EXPECT_EQ(memory.Describe("").regions().size(), 0);
}

TEST(SharedMemoryTest, RefusesKeysThatLeadElsewhere) {
  SharedObject object("0123456789");
  SharedMemory memory(kMost);
  for (const std::string& key :
       {std::string(), std::string("/"), std::string("."), std::string(".."),
        std::string("/.."), std::string("../etc/passwd"),
        std::string("/../../etc/passwd"), std::string("//etc/passwd"),
        std::string("a/b"), std::string(".hidden"), std::string(256, 'x'),
        object.key() + std::string("\0x", 2),
        std::string("/sfmamba_no_such_object")}) {
    auto request = object.Request("mine", 4);
    request.set_key(key);
    EXPECT_EQ(FieldOf(memory.Register(request)), "key") << key;
  }
}

TEST(SharedMemoryTest, AKeyIsShorterThanAFilesNameMayBe) {
  SharedMemory memory(kMost);
  const auto error = [&memory](size_t size) {
    inference::SystemSharedMemoryRegisterRequest request;
    request.set_name("mine");
    request.set_key(std::string(size, 'x'));
    request.set_byte_size(1);
    return std::string(memory.Register(request).message());
  };
  const std::string shown = "got \"" + std::string(64, 'x') + "\", expected ";
  EXPECT_EQ(error(254),
            shown + "a shared memory object that the server may read");
  EXPECT_EQ(error(255), shown + "the name of a shared memory object");
}

TEST(SharedMemoryTest, RefusesRegionsBeyondTheirObject) {
  SharedObject object("0123456789");
  SharedMemory memory(kMost);
  for (const auto& [bytes, offset] :
       std::vector<std::pair<uint64_t, uint64_t>>{{0, 0},
                                                  {11, 0},
                                                  {1, 10},
                                                  {10, 1},
                                                  {~uint64_t{0}, 1},
                                                  {1, ~uint64_t{0}},
                                                  {~uint64_t{0}, 11}}) {
    EXPECT_EQ(FieldOf(memory.Register(object.Request("mine", bytes, offset))),
              "byte_size")
        << bytes << " " << offset;
  }
}

TEST(SharedMemoryTest, RefusesNamesAndMoreRegionsThanItHolds) {
  SharedObject object("0123456789");
  SharedMemory memory(kMost);
  EXPECT_EQ(FieldOf(memory.Register(object.Request("", 1))), "name");
  EXPECT_EQ(FieldOf(memory.Register(object.Request(std::string(255, 'x'), 1))),
            "");
  memory.Unregister(std::string(255, 'x'));
  EXPECT_EQ(FieldOf(memory.Register(object.Request(std::string(256, 'x'), 1))),
            "name");
  constexpr int kMostRegions = 64;  // docs/clients.md.
  for (int i = 0; i < kMostRegions; ++i) {
    ASSERT_EQ(FieldOf(memory.Register(object.Request(absl::StrCat(i), 1))), "");
  }
  EXPECT_EQ(FieldOf(memory.Register(object.Request("more", 1))), "name");
  memory.Unregister("7");
  EXPECT_EQ(FieldOf(memory.Register(object.Request("8", 1))), "name");
  EXPECT_EQ(FieldOf(memory.Register(object.Request("more", 1))), "");
}

TEST(SharedMemoryTest, RefusesTensorsBeyondTheirRegion) {
  SharedObject object("0123456789");
  SharedMemory memory(/*max_tensor_bytes=*/7);
  ASSERT_EQ(FieldOf(memory.Register(object.Request("mine", 9))), "");
  const auto field = [&](const ParameterMap& map) {
    return FieldOf(memory.Find(map).status());
  };
  constexpr char kBytes[] = ".parameters.shared_memory_byte_size";
  EXPECT_EQ(field(Parameters("mine", 7, 2)), "");
  EXPECT_EQ(field(Parameters("mine", 7, 3)), kBytes);
  EXPECT_EQ(field(Parameters("mine", 8)), kBytes) << "more than a tensor has";
  EXPECT_EQ(field(Parameters("mine", 0)), kBytes);
  EXPECT_EQ(field(Parameters("mine", -1)), kBytes);
  EXPECT_EQ(field(Parameters("mine", 1, INT64_MAX)), kBytes);
  EXPECT_EQ(field(Parameters("mine", 1, -1)),
            ".parameters.shared_memory_offset");
  EXPECT_EQ(field(Parameters("other", 1)), ".parameters.shared_memory_region");
  ParameterMap offset = Parameters("mine", 1);
  offset["shared_memory_offset"].set_string_param("1");
  EXPECT_EQ(field(offset), ".parameters.shared_memory_offset");
  ParameterMap text = Parameters("mine", 1);
  text["shared_memory_byte_size"].set_string_param("1");
  EXPECT_EQ(field(text), kBytes);
}

// Mapped memory would end the process here.
TEST(SharedMemoryTest, AnObjectThatIsCutOffIsAnError) {
  SharedObject object(std::string(10'000, 'x'));
  SharedMemory memory(kMost);
  ASSERT_EQ(FieldOf(memory.Register(object.Request("mine", 10'000))), "");
  const auto tensor = memory.Find(Parameters("mine", 6'000, 4'000));
  ASSERT_TRUE(tensor.ok()) << tensor.status();
  object.Truncate(5'000);
  std::string data(6'000, '?');
  EXPECT_TRUE(absl::IsInvalidArgument(
      tensor->Read(reinterpret_cast<uint8_t*>(data.data()))));
  EXPECT_TRUE(absl::IsInvalidArgument(tensor->Write(data)));
  EXPECT_EQ(object.Bytes().size(), 5'000) << "it must not grow";
}

TEST(SharedMemoryTest, ATensorOutlivesItsRegionAndItsObjectsName) {
  SharedMemory memory(kMost);
  absl::StatusOr<SharedMemory::Tensor> tensor = absl::UnknownError("");
  {
    SharedObject object("0123456789");
    ASSERT_EQ(FieldOf(memory.Register(object.Request("mine", 10))), "");
    tensor = memory.Find(Parameters("mine", 10));
    memory.Unregister("mine");
  }
  ASSERT_TRUE(tensor.ok()) << tensor.status();
  EXPECT_EQ(Read(*tensor), "0123456789");
}

TEST(SharedMemoryTest, AForgottenRegionTakesNoDescriptors) {
  SharedObject object("0123456789");
  SharedMemory memory(kMost);
  // The two that are free and have the lowest numbers.
  const auto next_descriptors = [] {
    const std::pair<int, int> fds = {dup(STDERR_FILENO), dup(STDERR_FILENO)};
    close(fds.first);
    close(fds.second);
    return fds;
  };
  const auto before = next_descriptors();
  ASSERT_EQ(FieldOf(memory.Register(object.Request("mine", 10))), "");
  EXPECT_NE(next_descriptors(), before);
  memory.Unregister("mine");
  EXPECT_EQ(next_descriptors(), before);
}

TEST(SharedMemoryTest, IsUsedByManyAtOnce) {
  SharedObject object(std::string(4096, 'x'));
  SharedMemory memory(kMost);
  std::vector<std::thread> threads;
  std::atomic<int> found{0};
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&, name = absl::StrCat(thread % 2)] {
      for (int i = 0; i < 500; ++i) {
        memory.Register(object.Request(name, 4096)).IgnoreError();
        const auto tensor = memory.Find(Parameters(name, 4096));
        memory.Unregister(i % 100 == 0 ? "" : name);
        if (!tensor.ok()) continue;
        ++found;
        EXPECT_EQ(Read(*tensor).size(), 4096);
        EXPECT_TRUE(tensor->Write("y").ok());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT(found, 0);
}

}  // namespace
}  // namespace sfmamba::kserve
