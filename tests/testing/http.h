#ifndef SFMAMBA_TESTS_TESTING_HTTP_H_
#define SFMAMBA_TESTS_TESTING_HTTP_H_

#include <initializer_list>
#include <map>
#include <string>

namespace sfmamba {

// Sends GET `path` to 127.0.0.1:`port`. Returns the response's body, or an
// empty string if the status is not 200.
std::string HttpGet(int port, const std::string& path);

// Returns the samples of a Prometheus text exposition. The keys have the form
// "name{label="value",...}", as in the text.
std::map<std::string, double> Samples(const std::string& exposition);

// Returns the sum of the samples of `name` that have all of `labels`, such as
// R"(code="OK")".
double SumOf(const std::map<std::string, double>& samples,
             const std::string& name,
             const std::initializer_list<std::string>& labels);

}  // namespace sfmamba

#endif  // SFMAMBA_TESTS_TESTING_HTTP_H_
