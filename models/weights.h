// Weights of a model from a safetensors file, all or none.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "handgrad/io/safetensors.h"
#include "handgrad/nn/module.h"

namespace handgrad::models {

/// Every parameter under its name, for a file. The numbers are shared, not copied.
std::vector<io::NamedArray> weights_of(const std::vector<nn::NamedParameter>& parameters);

/// Which element types a file may have: the model's own, or any that can be converted to it.
enum class AcceptTypes { same, any_float };

/// A file that fits a model: its names and shapes are the model's. A tied parameter may have any of its names in
/// the file, or several with equal numbers.
class WeightsFile {
 public:
  /// NameMismatchError that lists all that does not fit; the reader's errors.
  WeightsFile(const std::filesystem::path& path, const nn::Module& model, AcceptTypes types);

  /// The numbers of all parameters, in the model's element type. Error when two names of a tied parameter differ.
  std::vector<Array> read() const;
  /// Puts them into the parameters. Cannot fail.
  void assign(const std::vector<Array>& numbers) const;

 private:
  struct Match {
    Parameter* parameter;
    std::string name;                               // the first, for messages
    std::vector<const io::TensorEntry*> entries{};  // in the file: one, or several of a tied one
  };

  void find_entries(const nn::Module& model);
  void check(AcceptTypes types) const;

  io::SafetensorsReader reader_;
  std::vector<Match> matches_;
};

}  // namespace handgrad::models
