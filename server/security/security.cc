#include "server/security/security.h"

#include <filesystem>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/security/tokens.h"
#include "server/security/trusted_proxies.h"
#include "server/settings/textproto.h"

namespace sfmamba::security {
namespace {

constexpr absl::Duration kPeriod = absl::Seconds(1);

Quota QuotaOf(const v1::ServerConfig& config) {
  Quota quota;
  quota.max_items = config.max_client_items();
  quota.items_per_second = config.client_items_per_second();
  quota.burst = config.client_burst();
  return quota;
}

Gate::Options GateOptions(const v1::ServerConfig& config,
                          const Security::Events& events) {
  Gate::Options options;
  options.quota = QuotaOf(config);
  options.refused = events.refused;
  options.malformed_forward = events.malformed_forward;
  return options;
}

// Converts any error of reading or loading a file to INVALID_ARGUMENT. The
// setting that contains the file's path then counts as wrong, and the server
// exits with the code for a wrong setting.
absl::Status ForSetting(const absl::Status& status) {
  if (status.ok()) return status;
  return absl::InvalidArgumentError(status.message());
}

}  // namespace

Security::Security(const v1::ServerConfig& config, Events events)
    : config_(config),
      events_(std::move(events)),
      has_tls_(!config.tls_cert_file().empty()),
      gate_(GateOptions(config_, events_)) {}

absl::Status Security::Open() {
  const std::vector<std::string> networks = {config_.trusted_proxies().begin(),
                                             config_.trusted_proxies().end()};
  absl::StatusOr<TrustedProxies> proxies = TrustedProxies::Parse(networks);
  if (!proxies.ok()) return proxies.status();
  gate_.Trust(*std::move(proxies));
  const auto watch =
      [this](std::string what, std::vector<WatchedFiles::File> files,
             absl::Status (Security::*take)(const WatchedFiles::Contents&)) {
        WatchedFiles::Options options;
        options.files = std::move(files);
        options.take = [this, take](const WatchedFiles::Contents& contents) {
          return (this->*take)(contents);
        };
        options.changed = [this,
                           what = std::move(what)](const absl::Status& s) {
          events_.reloaded(what, s);
        };
        files_.emplace_back(std::move(options));
        return ForSetting(files_.back().Open());
      };
  absl::Status status;
  if (!config_.token_file().empty()) {
    status = watch("tokens", {{"token_file", config_.token_file()}},
                   &Security::TakeTokens);
  }
  if (status.ok() && has_tls_) {
    std::vector<WatchedFiles::File> files = {
        {"tls_cert_file", config_.tls_cert_file()},
        {"tls_key_file", config_.tls_key_file()}};
    if (!config_.tls_client_ca_file().empty()) {
      files.push_back({"tls_client_ca_file", config_.tls_client_ca_file()});
    }
    status = watch("tls", std::move(files), &Security::TakeIdentity);
  }
  if (!status.ok() || files_.empty()) return status;
  watch_ = std::make_unique<server::Worker>("files", kPeriod, [this] {
    for (WatchedFiles& files : files_) files.Look();
  });
  return absl::OkStatus();
}

absl::Status Security::TakeTokens(const WatchedFiles::Contents& contents) {
  absl::StatusOr<Tokens> tokens = Tokens::Parse(contents[0], QuotaOf(config_));
  if (!tokens.ok()) return tokens.status();
  gate_.Use(*std::move(tokens));
  return absl::OkStatus();
}

absl::Status Security::TakeIdentity(const WatchedFiles::Contents& contents) {
  absl::StatusOr<TlsIdentity> identity = MakeTlsIdentity(
      contents[0], contents[1], contents.size() > 2 ? contents[2] : "");
  if (!identity.ok()) return identity.status();
  events_.certificate_expires(identity->expires);
  tls_.Set(*std::move(identity));
  return absl::OkStatus();
}

WatchedFiles::WatchedFiles(Options options) : options_(std::move(options)) {}

absl::StatusOr<WatchedFiles::Contents> WatchedFiles::Read() const {
  Contents contents;
  for (const File& file : options_.files) {
    const std::string what = absl::StrCat(file.setting, ": ", file.path);
    // Refuses a pipe, because it can be read only once. A second read might
    // block forever.
    std::error_code error;
    if (std::filesystem::is_fifo(file.path, error)) {
      return absl::InvalidArgumentError(
          absl::StrCat(what, ": got a pipe, expected a file"));
    }
    absl::StatusOr<std::string> text =
        server::ReadTextFile(what, file.path, options_.max_bytes);
    if (!text.ok()) return text.status();
    contents.push_back(*std::move(text));
  }
  return contents;
}

absl::Status WatchedFiles::Open() {
  absl::StatusOr<Contents> contents = Read();
  if (!contents.ok()) return contents.status();
  const absl::Status status = options_.take(*contents);
  seen_ = settled_ = contents;
  if (status.ok()) taken_ = *std::move(contents);
  return status;
}

void WatchedFiles::Look() {
  absl::StatusOr<Contents> contents = Read();
  // A change is loaded only if two consecutive calls of Look() read the same
  // contents. Somebody may still be writing a file, even if its current
  // contents are valid.
  const bool settled = contents == seen_;
  seen_ = std::move(contents);
  if (!settled || seen_ == settled_) return;
  settled_ = seen_;
  absl::Status status = seen_.status();
  if (status.ok()) {
    // Does nothing if the files were changed back to the loaded contents.
    if (*seen_ == taken_) return;
    status = options_.take(*seen_);
    if (status.ok()) taken_ = *seen_;
  }
  options_.changed(status);
}

}  // namespace sfmamba::security
