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

// Makes random messages of any type, by its descriptor. Most are valid if the
// type's fields have words, and a few are no messages. Thread-compatible.
class RandomMessages {
 public:
  // By "field" or "Message.field": the values that strings, bytes and numbers
  // mostly have. These fields, and messages named here, are almost always set,
  // and others one time in five.
  using Words = std::map<std::string, std::vector<std::string>>;

  RandomMessages(uint32_t seed, Words words)
      : random_(seed), words_(std::move(words)) {}

  // Returns a message of `type`, serialized. One in thirty has wrong bytes.
  std::string Next(const google::protobuf::Descriptor& type);
  // Returns one as JSON.
  std::string NextJson(const google::protobuf::Descriptor& type);

  // Makes up to three wrong bytes, one time in thirty.
  void Spoil(std::string* bytes);

  // Returns a number of 0 .. n - 1.
  int Below(int n);
  bool OneIn(int n) { return Below(n) == 0; }

 private:
  std::unique_ptr<google::protobuf::Message> Make(
      const google::protobuf::Descriptor& type);
  void Fill(google::protobuf::Message* message, int depth);
  void FillField(google::protobuf::Message* message,
                 const google::protobuf::FieldDescriptor& field, int depth);
  // Null if the field has none.
  const std::vector<std::string>* WordsOf(
      const google::protobuf::FieldDescriptor& field) const;
  // One of the field's words; null if its value is to be anything.
  const std::string* Word(const google::protobuf::FieldDescriptor& field);
  std::string Text(const google::protobuf::FieldDescriptor& field);
  int64_t Number(const google::protobuf::FieldDescriptor& field);

  std::mt19937 random_;
  const Words words_;
};

}  // namespace sfmamba

#endif  // SFMAMBA_TESTS_E2E_ATTACKS_RANDOM_MESSAGES_H_
