// Measures how much TLS loads the HTTP port's only thread. One benchmark
// measures the CPU time of a handshake. The other measures how long an answer
// on an open connection takes during a thousand handshakes.

#include <algorithm>
#include <atomic>
#include <csignal>
#include <memory>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "benchmark/benchmark.h"
#include "server/http/http_server.h"
#include "server/security/tls_identity.h"
#include "tests/server/http/tls_client.h"
#include "tests/testing/certificates.h"

namespace sfmamba::http {
namespace {

constexpr int kFlood = 1000;

class Port {
 public:
  explicit Port(bool rsa) {
    std::signal(SIGPIPE, SIG_IGN);
    const Certificate own =
        MakeCertificate({"localhost", nullptr, /*expired=*/false, rsa});
    identity_.Set({own.pem, own.key});
    HttpOptions options;
    options.host = "127.0.0.1";
    options.max_connections = 2 * kFlood;
    options.head_time = absl::Minutes(1);
    options.tls = *TlsContext::Create({&identity_});
    server_ = *HttpServer::Start(std::move(options),
                                 [](std::unique_ptr<Exchange> exchange) {
                                   exchange->Answer(HttpResponse(), [] {});
                                 });
  }
  int port() const { return server_->port(); }

 private:
  security::CurrentTlsIdentity identity_;
  std::unique_ptr<HttpServer> server_;
};

// Measures the CPU time of client and server together.
void BM_Handshake(benchmark::State& state) {
  const Port port(state.range(0) != 0);
  for (auto _ : state) {
    TlsClient client(port.port());
    if (!client.Greet()) state.SkipWithError("no handshake");
  }
}
BENCHMARK(BM_Handshake)
    ->ArgName("rsa")
    ->Arg(0)
    ->Arg(1)
    ->MeasureProcessCPUTime();

// Measures the time of answers on an open connection. Reports the median and
// the slowest of a hundred answers.
void BM_AnswerDuringHandshakes(benchmark::State& state) {
  const Port port(state.range(0) != 0);
  TlsClient victim(port.port());
  victim.Greet();
  std::vector<std::unique_ptr<TlsClient>> flood;
  std::vector<double> took;
  std::atomic<bool> stopped{false};
  std::thread attacker([&] {
    while (!stopped) {
      std::vector<std::unique_ptr<TlsClient>> clients;
      for (int i = 0; i < kFlood && !stopped; ++i) {
        clients.push_back(std::make_unique<TlsClient>(port.port()));
        clients.back()->Start();
      }
    }
  });
  for (auto _ : state) {
    const absl::Time start = absl::Now();
    victim.Send("GET / HTTP/1.1\r\n\r\n");
    victim.ReadAnswer();
    took.push_back(absl::ToDoubleMilliseconds(absl::Now() - start));
  }
  stopped = true;
  attacker.join();
  std::sort(took.begin(), took.end());
  state.counters["p50_ms"] = took[took.size() / 2];
  state.counters["p99_ms"] = took[took.size() * 99 / 100];
  state.counters["max_ms"] = took.back();
}
BENCHMARK(BM_AnswerDuringHandshakes)
    ->ArgName("rsa")
    ->Arg(0)
    ->Arg(1)
    ->Iterations(2000)
    ->UseRealTime();

}  // namespace
}  // namespace sfmamba::http

BENCHMARK_MAIN();
