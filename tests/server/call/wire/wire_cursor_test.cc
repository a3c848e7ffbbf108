#include "server/call/wire/wire_cursor.h"

#include <initializer_list>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace sfmamba::call {
namespace {

using Parts = std::vector<absl::string_view>;

std::string Bytes(std::initializer_list<int> bytes) {
  return std::string(bytes.begin(), bytes.end());
}

TEST(WireCursorTest, ReadsAcrossParts) {
  const std::string bytes = Bytes({0x92, 0x01, 0xac, 0x02, 1, 2, 3, 4});
  for (size_t cut = 0; cut <= bytes.size(); ++cut) {
    const absl::string_view all = bytes;
    const Parts parts = {all.substr(0, cut), "", all.substr(cut)};
    WireCursor cursor(parts);
    EXPECT_EQ(cursor.size(), 8);
    uint32_t tag;
    uint64_t value;
    ASSERT_TRUE(cursor.ReadTag(8, &tag));
    EXPECT_EQ(NumberOf(tag), 18u);
    EXPECT_EQ(TypeOf(tag), WireType::kLengthDelimited);
    ASSERT_TRUE(cursor.ReadVarint(8, &value));
    EXPECT_EQ(value, 300u);
    EXPECT_EQ(cursor.position(), 4);
    std::string copy;
    EXPECT_TRUE(cursor.Skip(1, 8));
    EXPECT_TRUE(cursor.Copy(3, 8, &copy));
    EXPECT_EQ(copy, Bytes({2, 3, 4}));
    EXPECT_EQ(cursor.position(), 8);
    EXPECT_FALSE(cursor.ReadTag(8, &tag));
  }
}

// Makes a cursor over `bytes` and calls `method` with the cursor and the end of
// `bytes`. Returns the result of `method`.
template <typename Method>
bool Read(const std::string& bytes, const Method& method) {
  const Parts parts = {bytes};
  WireCursor cursor(parts);
  return method(cursor, cursor.size());
}

TEST(WireCursorTest, ANumberHasAtMostTenBytesAndATagFive) {
  const auto varint = [](WireCursor& cursor, int64_t end) {
    uint64_t value;
    return cursor.ReadVarint(end, &value);
  };
  EXPECT_TRUE(Read(std::string(9, '\xff') + '\1', varint));
  EXPECT_FALSE(Read(std::string(10, '\xff') + '\1', varint));
  EXPECT_FALSE(Read(std::string(3, '\xff'), varint));
  const auto tag = [](WireCursor& cursor, int64_t end) {
    uint32_t value;
    return cursor.ReadTag(end, &value);
  };
  EXPECT_TRUE(Read(std::string(4, '\xff') + '\1', tag));
  EXPECT_FALSE(Read(std::string(5, '\xff') + '\1', tag));
  EXPECT_FALSE(Read(Bytes({5}), tag));  // The tag of field 0 is invalid.
}

TEST(WireCursorTest, NothingPassesItsEnd) {
  const auto length = [](WireCursor& cursor, int64_t end) {
    int64_t value;
    return cursor.ReadLength(end, &value);
  };
  EXPECT_TRUE(Read(Bytes({2, 0, 0}), length));
  EXPECT_FALSE(Read(Bytes({3, 0, 0}), length));
  const auto skip = [](WireCursor& cursor, int64_t end) {
    return cursor.Skip(4, end);
  };
  EXPECT_TRUE(Read(Bytes({0, 0, 0, 0}), skip));
  EXPECT_FALSE(Read(Bytes({0, 0, 0}), skip));
  const auto copy_two_of_one = [](WireCursor& cursor, int64_t) {
    std::string copy;
    return cursor.Copy(2, 1, &copy);
  };
  EXPECT_FALSE(Read(Bytes({0, 0, 0}), copy_two_of_one));
}

TEST(WireCursorTest, SkipsAFieldOfEachType) {
  const auto skip = [](WireCursor& cursor, int64_t end) {
    uint32_t tag;
    return cursor.ReadTag(end, &tag) && cursor.SkipField(tag, end, 2) &&
           cursor.position() == end;
  };
  EXPECT_TRUE(Read(Bytes({0x08, 0xff, 0x01}), skip));
  EXPECT_TRUE(Read(Bytes({0x09, 1, 2, 3, 4, 5, 6, 7, 8}), skip));
  EXPECT_TRUE(Read(Bytes({0x0a, 2, 1, 2}), skip));
  EXPECT_TRUE(Read(Bytes({0x0d, 1, 2, 3, 4}), skip));
  EXPECT_TRUE(Read(Bytes({0x0b, 0x08, 1, 0x0c}), skip));
  EXPECT_TRUE(Read(Bytes({0x0b, 0x13, 0x14, 0x0c}), skip));
  // The groups are too deep, have no end, or have the end of another group. The
  // last cases are an end without a start and unknown wire types.
  EXPECT_FALSE(Read(Bytes({0x0b, 0x13, 0x1b, 0x1c, 0x14, 0x0c}), skip));
  EXPECT_FALSE(Read(Bytes({0x0b, 0x08, 1}), skip));
  EXPECT_FALSE(Read(Bytes({0x0b, 0x14}), skip));
  EXPECT_FALSE(Read(Bytes({0x0c}), skip));
  EXPECT_FALSE(Read(Bytes({0x0e}), skip));
  EXPECT_FALSE(Read(Bytes({0x0f}), skip));
}

}  // namespace
}  // namespace sfmamba::call
