// What a config may say: every key with its type, range, default and sentence, ordered by the object it stands in.
// The loader's own reads are the only list; the schema, the reference page and `handgrad layers` are views of it.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "handgrad/nn/fields.h"

namespace handgrad::train {

/// An object of a config.
struct ConfigObject {
  /// One of the kinds that its key "type" chooses from, and the keys that only this kind has.
  struct Kind {
    std::string type;           ///< the value of "type": "rms_norm"
    std::string doc;            ///< one sentence
    bool usual = false;         ///< taken when "type" is not given
    std::vector<nn::Key> keys;  ///< in the order in which they are read
  };

  std::string pointer;        ///< "/model/norm"; empty: the config itself
  std::string doc;            ///< one sentence
  std::string what;           ///< what one of its kinds is called, "norm"; empty without kinds
  std::vector<nn::Key> keys;  ///< that every kind has, "type" among them; inner objects too
  std::vector<Kind> kinds;    ///< in the order of the registry; none where there is nothing to choose
};

/// Every object, an outer one before those in it, with what the program has registered.
std::vector<ConfigObject> config_objects();

/// "model.norm.eps" for "/model/norm/eps": how --set writes it.
std::string dotted(const std::string& pointer);
/// The last name of a pointer: "eps".
std::string last_name(const std::string& pointer);
/// What the value may be: "an integer, at least 1"; "a text: random or sequential".
std::string value_text(const nn::Key& key);

/// JSON Schema (draft 7) of configs, for editors and other programs: closed objects, ranges, defaults, and for each
/// "type" the keys that it has.
nlohmann::ordered_json config_schema();
/// The reference page, in Markdown.
std::string config_reference();

}  // namespace handgrad::train
