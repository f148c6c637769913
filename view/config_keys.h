// What a config may say: every key with its type, range, default and sentence, ordered by object.
// The loader's own reads are the only list; the schema, the reference page and `handgrad layers` are views of it.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "handgrad/io/fields.h"
#include "handgrad/train/config.h"

namespace handgrad::view {

/// An object of a config.
struct ConfigObject {
  /// One of the types that its key "type" chooses from, and the keys that only this type has.
  struct Type {
    std::string name;           ///< the value of "type": "rms_norm"
    std::string doc;            ///< one sentence
    bool is_default = false;    ///< taken when "type" is not given
    std::vector<io::Key> keys;  ///< in the order in which they are read
  };

  std::string pointer;        ///< "/model/norm"; empty: the config itself
  std::string doc;            ///< one sentence
  std::string what;           ///< what one of its types is called, "norm"; empty without types
  std::vector<io::Key> keys;  ///< that every type has, "type" among them; inner objects too
  std::vector<Type> types;    ///< in the order of the registry; none where there is nothing to choose
};

/// Every object, an outer one before those in it, with what the program has registered.
std::vector<ConfigObject> config_objects();

/// The last name of a pointer: "eps".
std::string last_name(const std::string& pointer);
/// What the value may be: "an integer, at least 1"; "a text: random or sequential".
std::string value_text(const io::Key& key);

/// JSON Schema (draft 7) of configs, for editors and other programs: closed objects, ranges, defaults, and for each
/// "type" the keys that it has.
nlohmann::ordered_json config_schema();
/// The reference page, in Markdown.
std::string config_reference();

/// A value in force.
struct ShownKey {
  std::string key;     ///< "model.norm.eps"
  std::string value;   ///< as JSON text; empty when there is none
  std::string origin;  ///< "default", "file" or "command line"; empty when there is no value
};

/// Every key of a config. The keys of each section stay together, in the order in which the sections are read. ConfigError
/// for a config with a mistake.
std::vector<ShownKey> shown_keys(const train::ConfigDocument& document);

}  // namespace handgrad::view
