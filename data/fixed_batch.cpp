#include "handgrad/data/fixed_batch.h"

#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "handgrad/core/error.h"
#include "handgrad/io/files.h"
#include "handgrad/io/json_text.h"

namespace handgrad::data {
namespace {

using nlohmann::json;

struct Table {
  std::int64_t rows = 0, cols = 0;
  std::vector<std::int32_t> ids;
};

// Reads one of the two tables; knows what to say about where it is.
class TableReader {
 public:
  TableReader(const std::string& source, std::int64_t vocab_size)
      : source_(source),
        largest_(vocab_size > 0 ? vocab_size - 1 : std::numeric_limits<std::int32_t>::max()) {}

  Table read(const json& value, const std::string& place) const {
    require(value.is_array() && !value.empty(), place, "must be a list of rows of token ids", value);
    Table table;
    table.rows = static_cast<std::int64_t>(value.size());
    for (std::size_t row = 0; row < value.size(); ++row) read_row(value[row], place, row, table);
    return table;
  }

 private:
  void read_row(const json& value, const std::string& table_place, std::size_t row, Table& table) const {
    const std::string place = fmt::format("{}/{}", table_place, row);
    require(value.is_array() && !value.empty(), place, "must be a row of token ids", value);
    const auto cols = static_cast<std::int64_t>(value.size());
    if (row == 0) table.cols = cols;
    if (cols != table.cols)
      throw Error(source_,
                  fmt::format("{}: must have {} ids, as row 0 has, got {}", place, table.cols, cols));
    for (std::size_t col = 0; col < value.size(); ++col)
      table.ids.push_back(id(value[col], fmt::format("{}/{}", place, col)));
  }

  std::int32_t id(const json& value, const std::string& place) const {
    // What is beyond int64 turns negative in it, and is refused as such.
    const bool is_id =
        value.is_number_integer() && value.get<std::int64_t>() >= 0 && value.get<std::int64_t>() <= largest_;
    require(is_id, place, fmt::format("must be a token id from 0 to {}", largest_), value);
    return value.get<std::int32_t>();
  }

  void require(bool condition, const std::string& place, const std::string& rule, const json& value) const {
    if (condition) return;
    std::string got = value.dump(-1, ' ', false, json::error_handler_t::replace);
    if (value.is_structured() && !value.empty()) got = std::string("an ") + value.type_name();
    throw Error(source_, fmt::format("{}: {}, got {}", place, rule, got));
  }

  const std::string& source_;
  std::int64_t largest_;
};

const json& required(const json& object, const char* key, const std::string& source,
                     const std::string& pointer) {
  const auto found = object.find(key);
  if (found != object.end()) return *found;
  throw Error(source, fmt::format("{}/{}: missing", pointer, key), {},
              R"({"inputs": [[1, 2]], "targets": [[2, 3]]}, rows of token ids)");
}

void throw_other_keys(const json& object, const std::string& source) {
  if (!object.is_object()) return;
  for (const auto& item : object.items())
    if (item.key() != "inputs" && item.key() != "targets")
      throw Error(source, fmt::format("/{}: unknown key (known: inputs, targets)", item.key()));
}

}  // namespace

Batch parse_batch(const json& object, const std::string& source, std::int64_t vocab_size,
                  const std::string& pointer) {
  if (!object.is_object())
    throw Error(source, fmt::format("{}: must be an object with the keys \"inputs\" and \"targets\"",
                                    pointer.empty() ? "/" : pointer));
  const TableReader reader(source, vocab_size);
  Table inputs = reader.read(required(object, "inputs", source, pointer), pointer + "/inputs");
  Table targets = reader.read(required(object, "targets", source, pointer), pointer + "/targets");
  if (inputs.rows != targets.rows || inputs.cols != targets.cols)
    throw Error(source, "every input must have a target",
                {{pointer + "/inputs", fmt::format("[{}, {}]", inputs.rows, inputs.cols)},
                 {pointer + "/targets", fmt::format("[{}, {}]", targets.rows, targets.cols)}});
  return {inputs.rows, inputs.cols, std::move(inputs.ids), std::move(targets.ids)};
}

Batch read_batch(const std::filesystem::path& path, std::int64_t vocab_size) {
  const json object = io::parse_json(io::read_text_file(path).text, io::quoted(path));
  throw_other_keys(object, io::quoted(path));
  return parse_batch(object, io::quoted(path), vocab_size);
}

FixedBatch::FixedBatch(Batch batch) : Dataset({batch.rows, batch.cols}), batch_(std::move(batch)) {}

void FixedBatch::fill(Batch& batch, const Position&) { batch = batch_; }

}  // namespace handgrad::data
