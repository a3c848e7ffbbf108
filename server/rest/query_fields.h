#ifndef SFMAMBA_SERVER_REST_QUERY_FIELDS_H_
#define SFMAMBA_SERVER_REST_QUERY_FIELDS_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "google/protobuf/message.h"

namespace sfmamba::rest {

// Sets fields of messages from the parameters of a query. A parameter has the
// name of a field ("top_k" or "topK"), in the first of `messages` that has such
// a field. A field of a field is named after it ("crop.x_min"). Numbers and
// names of enumerators are written as in protobuf's JSON mapping, a duration as
// "1.5s" or "150ms", several numbers as "1,2" or by several parameters.
//
// INVALID_ARGUMENT with reason INVALID_FIELD and the parameter as field if
// there is no such field, if the text is no value of the field, or if it is set
// twice. Fields of bytes and lists of messages are not settable.
absl::Status SetFromQuery(
    const std::multimap<std::string, std::string>& query,
    const std::vector<google::protobuf::Message*>& messages);

}  // namespace sfmamba::rest

#endif  // SFMAMBA_SERVER_REST_QUERY_FIELDS_H_
