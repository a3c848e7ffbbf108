#ifndef SFMAMBA_TESTS_GPU_SCAN_FIGURES_H_
#define SFMAMBA_TESTS_GPU_SCAN_FIGURES_H_

#include <string>
#include <vector>

#include "kernels/cuda/quantiles.h"
#include "kernels/scan/scan_plan.h"
#include "model/tuning/scan_plan_table.h"
#include "tests/gpu/setting.h"

namespace sfmamba {

// A scan to measure.
struct ScanCase {
  enum Group {
    // Stages 3 and 4 of T, S and B at several batch sizes, with the fastest
    // plan of each kernel.
    kModel,
    // The paper's four shapes, with each B1 of each kernel.
    kPaper,
    // Sequences that are whole maps of images of 896 x 896 pixels, with the
    // fastest plan of each kernel.
    kLong,
    // Batches of sequences with different lengths, and batches of 31 and 127
    // sequences (prime numbers), with the fastest plan of each kernel.
    kMixed,
  };
  Group group;
  std::string name;  // "T stage 3"
  tuning::ScanShape shape;
  std::vector<int> lengths;  // The sequences' lengths if they differ.

  int64_t tokens() const;
};

// Returns all cases, the most valuable first.
std::vector<ScanCase> ScanCases();
// Returns the cases of these groups ("model", "paper", "long", "mixed") and
// numbers of sequences. An empty argument selects all.
std::vector<ScanCase> ScanCases(const std::vector<std::string>& groups,
                                const std::vector<int>& batches);

// Returns a case of the same name and of minimal size, for rehearsals.
ScanCase Tiny(ScanCase scan);

// Returns the plans to compare in a case. These are the plans of
// CandidatePlans(). For kPaper, the lane kernel with every B1 is added.
std::vector<kernels::ScanPlan> PlansOf(const ScanCase& scan,
                                       int multiprocessors);

// Returns "lane", "fold" or "chunk".
const char* NameOf(kernels::ScanPlan::Kernel kernel);
// Returns a text such as "4 lanes", "8 items, B1 = 32" or "64 chunks, 8 lanes".
std::string ToString(const kernels::ScanPlan& plan);

// The shortest time, in microseconds, that each of a device's limits allows.
// Values have two bytes, or four in fp32.
struct ScanBound {
  double memory, special_functions, fp32, issue;
  double largest() const;
};
ScanBound BoundOf(const ScanCase& scan, const Setting& setting);

// A measurement of one plan.
struct ScanFigure {
  ScanCase scan;
  std::string kernel;  // "lane", "fold", "chunk" or the name of a peer
  std::string plan;    // ToString() of the plan, or a peer's description of it
  int rows = 0;        // B1; 0 gives each sequence its own row.
  kernels::Quantiles warm, cold;  // In microseconds.
};

// Returns one line without the line break.
std::string Json(const ScanFigure& figure, const Setting& setting);

}  // namespace sfmamba

#endif  // SFMAMBA_TESTS_GPU_SCAN_FIGURES_H_
