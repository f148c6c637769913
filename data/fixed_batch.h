// One batch, written down, that comes again and again: the classic test whether a model can learn at all.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "handgrad/data/dataset.h"

namespace handgrad::data {

/// A batch from the keys "inputs" and "targets" of an object:
///
///     {"inputs": [[1, 2], [3, 4]], "targets": [[2, 3], [4, 5]]}
///
/// Rows of token ids, all of one length, as many targets as inputs. `vocab_size` bounds the ids; 0: unknown, only
/// negative ids are rejected. Error that names `source` (a file) and the place in it,
/// which begins with `pointer`, the place of the object: "/data".
Batch parse_batch(const nlohmann::json& object, const std::string& source, std::int64_t vocab_size,
                  const std::string& pointer = {});

/// The same from a file that holds these two keys and no others.
Batch read_batch(const std::filesystem::path& path, std::int64_t vocab_size);

/// Gives the same batch at every position and in every process.
class FixedBatch final : public Dataset {
 public:
  /// Its rows are the rows of every micro-batch.
  explicit FixedBatch(Batch batch);

  void fill(Batch& batch, const Position& position) override;
  std::int64_t batches_per_epoch() const override { return 1; }

 private:
  Batch batch_;
};

}  // namespace handgrad::data
