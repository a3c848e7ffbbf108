#ifndef SFMAMBA_SERVER_REST_KSERVE_JSON_KEYS_H_
#define SFMAMBA_SERVER_REST_KSERVE_JSON_KEYS_H_

#include "absl/strings/string_view.h"

namespace sfmamba::rest {

// The keys that the JSON of a request to infer may have, and their places.

// What a place in the JSON is of.
enum class Place {
  kTop,
  kRequest,
  kParameters,
  kInputs,
  kInput,
  kShape,
  kData,
  kFile,
  kOutputs,
  kOutput,
  kIgnored
};

// A key that is known in an object, and what its value is.
enum class Form { kString, kObject, kArray };
struct Key {
  Place place;
  absl::string_view name;
  Form form;
  Place inside = Place::kIgnored;  // The place inside an object or an array.
};
inline constexpr Key kKeys[] = {
    {Place::kRequest, "id", Form::kString},
    {Place::kRequest, "parameters", Form::kObject, Place::kParameters},
    {Place::kRequest, "inputs", Form::kArray, Place::kInputs},
    {Place::kRequest, "outputs", Form::kArray, Place::kOutputs},
    {Place::kInput, "name", Form::kString},
    {Place::kInput, "datatype", Form::kString},
    {Place::kInput, "shape", Form::kArray, Place::kShape},
    {Place::kInput, "parameters", Form::kObject, Place::kParameters},
    {Place::kInput, "data", Form::kArray, Place::kData},
    {Place::kFile, "b64", Form::kString},
    {Place::kOutput, "name", Form::kString},
    {Place::kOutput, "parameters", Form::kObject, Place::kParameters},
};

// Null if it is not known.
inline const Key* FindKey(Place place, absl::string_view name) {
  for (const Key& key : kKeys) {
    if (key.place == place && key.name == name) return &key;
  }
  return nullptr;
}

inline const char* FormName(Form form) {
  return form == Form::kString   ? "a string"
         : form == Form::kObject ? "an object"
                                 : "an array";
}

}  // namespace sfmamba::rest

#endif  // SFMAMBA_SERVER_REST_KSERVE_JSON_KEYS_H_
