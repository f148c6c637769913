// How far the inspected parameters have moved from their start, as the tables of a training run show it.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "handgrad/train/run.h"

namespace handgrad::cli {

/// One element of a parameter, and how far it is from its start.
struct Farthest {
  std::size_t index = 0;
  double value = 0, distance = 0;
};

/// An inspected parameter and its numbers at the start.
struct Moving {
  std::string name;   ///< "trf_blocks.0.norm1.scale"
  std::string kind;   ///< "scale"
  std::string owner;  ///< "trf_blocks.0.norm1"
  Parameter* parameter;
  std::vector<double> start;

  Farthest farthest() const;
  /// The one number that all elements began with, as text; empty when they began apart.
  std::string common_start() const;
};

/// The inspected vectors of a run (matrices are recorded, not listed), by kind and by the module that they belong to.
class Movement {
 public:
  /// Before the run's next step. `recording`: a resumed run's, which holds the parameters' start; empty for a new run.
  explicit Movement(const train::Run& run, const std::filesystem::path& recording = {});

  /// "ones and zeros": what the parameters of each kind began as; empty when they began apart.
  std::string starts() const;

  bool empty() const { return moving_.empty(); }
  const std::vector<Moving>& moving() const { return moving_; }
  /// "scale", "shift": in the order of their first appearance.
  const std::vector<std::string>& kinds() const { return kinds_; }
  /// "trf_blocks.0.norm1", ...: in the order of the model.
  const std::vector<std::string>& owners() const { return owners_; }
  /// nullptr when this owner has none of this kind.
  const Moving* find(const std::string& kind, const std::string& owner) const;
  /// The one that is farthest from its start, of a kind or of all; nullptr when there is none.
  const Moving* farthest(const std::string& kind = "") const;

 private:
  std::vector<Moving> moving_;
  std::vector<std::string> kinds_, owners_;
};

/// "scale - 1", "shift", "gain - its start": what the distance of this kind is.
std::string distance_name(const Movement& movement, const std::string& kind);

/// A distance in as few digits as the eye needs: 0, 0.0009, 0.014, 0.826.
std::string distance_text(double distance);

/// The last part of a module path: "norm1".
std::string last_part(const std::string& path);

}  // namespace handgrad::cli
