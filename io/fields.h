// Fields: strict reading of a JSON object. Each read names the key with its type, range, default and one
// sentence, so that the same lines of code load a config, check one, and describe what a config may say.
//
//     double eps = fields.number("eps", {.doc = "added to the variance", .fallback = 1e-5, .at_least = 0});
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "handgrad/io/field_keys.h"
#include "handgrad/io/json_text.h"

namespace handgrad::io {

/// "model.norm.eps" for the pointer "/model/norm/eps".
std::string dotted(const std::string& pointer);

/// What reading is for.
enum class Purpose {
  build,    ///< values are used
  check,    ///< values are checked; large things, models for instance, are not built
  describe  ///< there is no config: every read is only noted, and returns its default or some allowed value
};

/// Where values were written.
struct Source {
  std::string file;  ///< as messages name it; empty: a config without a file
  /// Values that come from elsewhere, by JSON pointer: {"/train/steps", "--set train.steps=ten"}.
  std::map<std::string, std::string> overrides = {};
};

/// A JSON object in a config, and which of its keys have been read. A handle: copies share what they noted,
/// also with the Fields of inner objects.
class Fields {
 public:
  /// `root` must be an object, else ConfigError. See io/json_text.h for reading one from text.
  explicit Fields(const nlohmann::json& root, Source source = {}, Purpose purpose = Purpose::build);
  /// Without a config: only notes what is read. `pointer` is the object's path.
  static Fields describing(std::string pointer = "");

  /// @{ The value of a key. ConfigError, naming file and pointer, when it is missing without a default, of
  /// another type ("2" is not a number), or out of range. A whole number may be written 2.0 or 1e4.
  std::int64_t integer(std::string_view key, const IntegerKey& rule = {});
  double number(std::string_view key, const NumberKey& rule = {});
  bool boolean(std::string_view key, const BooleanKey& rule = {});
  std::string string(std::string_view key, const StringKey& rule = {});
  std::vector<double> numbers(std::string_view key, const NumbersKey& rule = {});
  std::vector<std::string> strings(std::string_view key, const StringsKey& rule = {});
  /// @}
  /// @{ The same for keys that may be left out without a default taking their place.
  std::optional<std::int64_t> optional_integer(std::string_view key, const IntegerKey& rule = {});
  std::optional<std::string> optional_string(std::string_view key, const StringKey& rule = {});
  /// @}
  /// An inner object; one that is missing is empty.
  Fields object(std::string_view key, const char* doc = "");

  bool has(std::string_view key) const;  ///< whether the config has the key; it is not noted as read
  Purpose purpose() const;               ///< what the reading is for
  /// False: what costs memory or time is not to be made.
  bool building() const { return purpose() == Purpose::build; }
  bool describing_only() const { return purpose() == Purpose::describe; }  ///< true: there is no config
  /// While describing: the same object as seen by products of the type `of`.
  Fields described_for(std::string of) const;

  /// ConfigError for the first key, here or in an inner object, that was not read.
  void finish() const;
  /// Throws the ConfigError of this object's `key`: `rule` says what it must and what came instead.
  [[noreturn]] void throw_error(std::string_view key, std::string rule) const;

  const std::string& file() const;  ///< as messages name it
  /// The path of this object: "/model/norm"; empty for the root.
  const std::string& pointer() const { return pointer_; }
  std::string pointer_to(std::string_view key) const;  ///< "/model/norm/eps"
  /// Where the value of `key` was written: the file, an override, or "" when it was not.
  std::string origin(std::string_view key) const;

  /// Everything that was read through this handle and those that share with it, each key once, in order.
  const std::vector<Key>& keys() const;
  /// The config with every default filled in, as far as it was read.
  nlohmann::ordered_json effective() const;

 private:
  struct Document;
  enum class Presence { required, defaulted, optional };

  Fields(std::shared_ptr<Document> document, const nlohmann::json* object, std::string pointer,
         std::string of);
  /// Notes the key and finds its value; nullptr when there is none and need be none.
  const nlohmann::json* find(std::string_view key, Key note, Presence presence);
  template <class T, class Rule>
  std::optional<T> read(std::string_view key, const Rule& rule, Presence presence);
  template <class T, class Rule>
  T read(std::string_view key, const Rule& rule);

  std::shared_ptr<Document> document_;
  const nlohmann::json* object_;
  std::string pointer_, of_;
};

}  // namespace handgrad::io
