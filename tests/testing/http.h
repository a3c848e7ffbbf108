#ifndef SFMAMBA_TESTS_TESTING_HTTP_H_
#define SFMAMBA_TESTS_TESTING_HTTP_H_

#include <initializer_list>
#include <map>
#include <string>

namespace sfmamba {

// The body that 127.0.0.1:`port` answers to GET `path`; empty if it does not
// answer 200.
std::string HttpGet(int port, const std::string& path);

// The samples of a Prometheus text exposition by "name{label="value",...}", as
// written.
std::map<std::string, double> Samples(const std::string& exposition);

// The sum over the samples of `name` that have each of `labels`, such as
// R"(code="OK")".
double SumOf(const std::map<std::string, double>& samples,
             const std::string& name,
             const std::initializer_list<std::string>& labels);

}  // namespace sfmamba

#endif  // SFMAMBA_TESTS_TESTING_HTTP_H_
