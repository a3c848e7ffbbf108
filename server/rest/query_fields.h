#ifndef SFMAMBA_SERVER_REST_QUERY_FIELDS_H_
#define SFMAMBA_SERVER_REST_QUERY_FIELDS_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "google/protobuf/message.h"

namespace sfmamba::rest {

// Sets fields of messages from query parameters. The name of a parameter is the
// name of a field, such as "top_k" or "topK". If several messages have the
// field, the first one in `messages` is used. A nested field is named with a
// dot, such as "crop.x_min". Numbers and enum names are written as in
// protobuf's JSON mapping. Durations are written as "1.5s" or "150ms". The
// values of a repeated field of numbers are written as "1,2" or as several
// parameters with the same name.
//
// Returns INVALID_ARGUMENT with reason INVALID_FIELD in the following cases:
// - The field does not exist.
// - The type of the field is bytes or a repeated message.
// - The value is not valid for the field.
// - The field is set twice, although it is not a repeated field.
// ErrorDetail::field of the error contains the name of the parameter.
absl::Status SetFromQuery(
    const std::multimap<std::string, std::string>& query,
    const std::vector<google::protobuf::Message*>& messages);

}  // namespace sfmamba::rest

#endif  // SFMAMBA_SERVER_REST_QUERY_FIELDS_H_
