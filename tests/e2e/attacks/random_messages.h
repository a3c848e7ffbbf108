#ifndef SFMAMBA_TESTS_E2E_ATTACKS_RANDOM_MESSAGES_H_
#define SFMAMBA_TESTS_E2E_ATTACKS_RANDOM_MESSAGES_H_

#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "google/protobuf/message.h"

namespace sfmamba {

// Makes random messages of any type from the type's descriptor. If the type's
// fields have words (see Words), most messages are valid and a few are
// malformed. Thread-compatible.
class RandomMessages {
 public:
  // Typical values of a field. The key is "field" or "Message.field". A field
  // with words is almost always set. Any other field is set one time in five.
  using Words = std::map<std::string, std::vector<std::string>>;

  RandomMessages(uint32_t seed, Words words)
      : random_(seed), words_(std::move(words)) {}

  // Returns a serialized message of `type`. One message in thirty contains
  // wrong bytes.
  std::string Next(const google::protobuf::Descriptor& type);
  // Returns a message of `type` as JSON.
  std::string NextJson(const google::protobuf::Descriptor& type);

  // One time in thirty, replaces up to three bytes with random ones.
  void Spoil(std::string* bytes);

  // Returns a number from 0 to n - 1.
  int Below(int n);
  bool OneIn(int n) { return Below(n) == 0; }

 private:
  std::unique_ptr<google::protobuf::Message> Make(
      const google::protobuf::Descriptor& type);
  void Fill(google::protobuf::Message* message, int depth);
  void FillField(google::protobuf::Message* message,
                 const google::protobuf::FieldDescriptor& field, int depth);
  // Returns the words of a field, or null if the field has none.
  const std::vector<std::string>* WordsOf(
      const google::protobuf::FieldDescriptor& field) const;
  // Returns one of the words of a field. Returns null if the caller must choose
  // any value.
  const std::string* Word(const google::protobuf::FieldDescriptor& field);
  std::string Text(const google::protobuf::FieldDescriptor& field);
  int64_t Number(const google::protobuf::FieldDescriptor& field);

  std::mt19937 random_;
  const Words words_;
};

}  // namespace sfmamba

#endif  // SFMAMBA_TESTS_E2E_ATTACKS_RANDOM_MESSAGES_H_
