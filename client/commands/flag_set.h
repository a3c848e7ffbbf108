#ifndef SFMAMBA_CLIENT_COMMANDS_FLAG_SET_H_
#define SFMAMBA_CLIENT_COMMANDS_FLAG_SET_H_

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "absl/types/variant.h"

namespace sfmamba::client {

// The flags of one verb of the command line: each is bound to a variable, whose
// value before Parse() is the default that Help() shows.
//
//   FlagSet flags("sfmamba classify FILE...", "Names what pictures show.");
//   flags.Add("top_k", "N", "categories a picture", &top_k);
//   absl::StatusOr<std::vector<std::string>> files = flags.Parse(arguments);
class FlagSet {
 public:
  // An optional number stays unset where the flag is not given.
  using Target = absl::variant<std::string*, int*, int64_t*, double*,
                               absl::optional<double>*, bool*, absl::Duration*>;

  FlagSet(absl::string_view usage, absl::string_view description);

  // `target` must outlive the FlagSet. `placeholder` stands for the value in
  // Help(); a bool has none.
  void Add(absl::string_view name, absl::string_view placeholder,
           absl::string_view help, Target target);

  // `check` is called by Parse() once all variables are set, unless help is
  // asked for; its error is Parse()'s.
  void AddCheck(std::function<absl::Status()> check) {
    checks_.push_back(std::move(check));
  }

  // Sets the variables from "--name=value", "--name value" and, for a bool,
  // "--name" or "--name=false"; a single dash does as well. Returns the other
  // arguments; after "--" all are. INVALID_ARGUMENT names the culprit.
  absl::StatusOr<std::vector<std::string>> Parse(
      const std::vector<std::string>& arguments);

  // Whether Parse() met --help.
  bool help_requested() const { return help_requested_; }

  std::string Help() const;

 private:
  struct Flag {
    std::string name;
    std::string placeholder;
    std::string help;
    std::string default_value;
    Target target;
  };

  const Flag* Find(absl::string_view name) const;

  std::string usage_;
  std::string description_;
  std::vector<Flag> flags_;
  std::vector<std::function<absl::Status()>> checks_;
  bool help_requested_ = false;
};

}  // namespace sfmamba::client

#endif  // SFMAMBA_CLIENT_COMMANDS_FLAG_SET_H_
