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

// The flags of one verb of the command line, such as classify. Each flag is
// bound to a variable. Help() shows the variable's value before Parse() as the
// default.
//
//   FlagSet flags("sfmamba classify FILE...", "Names what pictures show.");
//   flags.Add("top_k", "N", "categories a picture", &top_k);
//   absl::StatusOr<std::vector<std::string>> files = flags.Parse(arguments);
class FlagSet {
 public:
  // An optional number stays unset if its flag is not given.
  using Target = absl::variant<std::string*, int*, int64_t*, double*,
                               absl::optional<double>*, bool*, absl::Duration*>;

  FlagSet(absl::string_view usage, absl::string_view description);

  // `target` must outlive the FlagSet. Help() shows `placeholder` as the value,
  // except for a bool.
  void Add(absl::string_view name, absl::string_view placeholder,
           absl::string_view help, Target target);

  // Parse() calls `check` after it has set all variables, unless help is
  // requested. If `check` fails, Parse() returns its error.
  void AddCheck(std::function<absl::Status()> check) {
    checks_.push_back(std::move(check));
  }

  // Sets the variables from "--name=value" or "--name value". A bool may also
  // be given as "--name". One dash works like two dashes. Returns the arguments
  // that are not flags. After "--", no argument is a flag. Returns
  // INVALID_ARGUMENT with the name of a flag that is wrong.
  absl::StatusOr<std::vector<std::string>> Parse(
      const std::vector<std::string>& arguments);

  // True if Parse() found --help.
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
