// Fields: strict reading of a JSON object. Each read names the key with its type, range, default and one
// sentence, so that the same lines of code load a config, check one, and describe what a config may say.
//
//     double eps = fields.number("eps", {.doc = "added to the variance", .fallback = 1e-5, .at_least = 0});
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "handgrad/io/config_error.h"

namespace handgrad::io {

/// A number that a count must divide: `{"emb_dim", 100}`.
struct Dividend {
  const char* name = nullptr;  ///< nullptr: nothing must be divided
  std::int64_t value = 0;      ///< what must be divided
};

/// What a key may be. Without `fallback` it is required.
struct IntegerKey {
  const char* doc = "";                       ///< one sentence for the reference
  std::optional<std::int64_t> fallback = {};  ///< the default
  /// @{ The range, both ends in it.
  std::int64_t at_least = std::numeric_limits<std::int64_t>::min();
  std::int64_t at_most = std::numeric_limits<std::int64_t>::max();
  /// @}
  Dividend divides = {};             ///< what the number must divide, as n_heads divides emb_dim
  const char* instead_of = nullptr;  ///< a key read before this one: exactly one of the two must be given
};
/// Only finite numbers are numbers.
struct NumberKey {
  const char* doc = "";                 ///< one sentence for the reference
  std::optional<double> fallback = {};  ///< the default
  /// @{ The range: ends that are in it, ends that are not.
  std::optional<double> at_least = {}, more_than = {}, at_most = {}, less_than = {};
  /// @}
};
/// true or false, nothing that only looks like it.
struct BooleanKey {
  const char* doc = "";               ///< one sentence for the reference
  std::optional<bool> fallback = {};  ///< the default
};
/// A text, any or one of several.
struct StringKey {
  const char* doc = "";                       ///< one sentence for the reference
  std::optional<std::string> fallback = {};   ///< the default
  std::vector<std::string> choices = {};      ///< none: any text
  const char* what = "value";                 ///< what a choice is called when it is unknown: "norm"
  std::vector<std::string> choice_docs = {};  ///< one sentence for each choice, or none at all
};
/// A list, in which each number is as in NumberKey.
struct NumbersKey {
  const char* doc = "";                              ///< one sentence for the reference
  std::optional<std::vector<double>> fallback = {};  ///< the default
  std::optional<std::size_t> size = {};              ///< how many there must be; none: any number
  /// @{ The range of each: ends that are in it, ends that are not.
  std::optional<double> at_least = {}, more_than = {}, at_most = {}, less_than = {};
  /// @}
};
/// A list of texts.
struct StringsKey {
  const char* doc = "";                                   ///< one sentence for the reference
  std::optional<std::vector<std::string>> fallback = {};  ///< the default
};

/// A key that was read, in every detail: the one list that loader, schema and reference page come from.
struct Key {
  /// The types a value may have; an object contains more keys.
  enum class Type { integer, number, boolean, string, numbers, strings, object };

  std::string pointer = {};  ///< "/model/norm/eps"
  std::string of = {};       ///< of which type it is a key, "layer_norm", where only some have it; else empty
  Type type = Type::string;  ///< of the value
  std::string doc = {};      ///< one sentence
  bool required = false;     ///< whether a config without it is an error
  std::string fallback = {};  ///< default as JSON text; empty when there is none
  std::string range = {};     ///< "at least 0 and less than 1"; empty when every value is allowed
  /// @{ The same range in numbers.
  std::optional<double> at_least = {}, more_than = {}, at_most = {}, less_than = {};
  /// @}
  std::optional<std::size_t> size = {};       ///< how long a list must be; none: as long as one likes
  std::vector<std::string> choices = {};      ///< the texts that are allowed; none: any
  std::vector<std::string> choice_docs = {};  ///< one sentence for each choice, or none at all
  std::string what = {};                      ///< what one of the choices is called: "norm"
  std::string instead_of = {};                ///< the key that this one replaces
  std::string value = {};                     ///< in force, as JSON text; empty when there is none
  std::string origin = {};                    ///< where it was written; empty: nowhere, it is the default
};

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
  std::optional<double> optional_number(std::string_view key, const NumberKey& rule = {});
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
