// How far the inspected parameters have moved from their initial values, and the tables of a training run that show it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "handgrad/train/run.h"
#include "handgrad/train/statistics.h"

namespace handgrad::cli {

/// An inspected parameter and its initial values.
struct TrackedParameter {
  std::string name;   ///< "trf_blocks.0.norm1.scale"
  std::string kind;   ///< "scale"
  std::string owner;  ///< "trf_blocks.0.norm1"
  Parameter* parameter;
  std::vector<double> start;

  /// Its elements now, measured from `start`.
  train::Statistics statistics() const;
  /// The largest distance of an element from its start.
  double distance() const;
};

/// The inspected vectors of a run (matrices are recorded, not listed), by kind and owner.
class Movement {
 public:
  /// Call it before the run's next step. `recording` is a resumed run's, with the initial values; empty for a new run.
  explicit Movement(const train::Run& run, const std::filesystem::path& recording = {});

  /// "ones and zeros": the initial values of each kind; empty when those of one kind differ.
  std::string starts() const;

  bool empty() const { return parameters_.empty(); }
  const std::vector<TrackedParameter>& parameters() const { return parameters_; }
  /// "scale", "shift": in the order of their first appearance.
  const std::vector<std::string>& kinds() const { return kinds_; }
  /// "trf_blocks.0.norm1", ...: in the order of the model.
  const std::vector<std::string>& owners() const { return owners_; }
  /// nullptr when this owner has none of this kind.
  const TrackedParameter* find(const std::string& kind, const std::string& owner) const;
  /// The parameter that moved farthest, of this kind or of all; nullptr when there is none.
  const TrackedParameter* farthest(const std::string& kind = "") const;

 private:
  std::vector<TrackedParameter> parameters_;
  std::vector<std::string> kinds_, owners_;
};

// ---- Tables

/// Which columns a row has: one for each parameter; with many modules, only the farthest parameter of each kind; on a
/// narrow terminal, only its distance.
enum class Layout { modules, farthest, narrow };
Layout layout_for(const Movement& movement, std::size_t columns);

/// The two lines above the rows.
std::string rows_heading(const Movement& movement, Layout layout);
/// One row: the step, the losses where they are known, the distances.
std::string row_text(const Movement& movement, Layout layout, std::int64_t step, std::optional<double> loss,
                     std::optional<double> validation_loss);

/// Mean, extremes and the farthest feature of every parameter, as they are now.
std::string final_table(const Movement& movement, std::int64_t step, Layout layout);

}  // namespace handgrad::cli
