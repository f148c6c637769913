#include "handgrad/view/config_keys.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "handgrad/io/field_keys.h"
#include "handgrad/train/run.h"
#include "handgrad/view/text.h"

namespace handgrad::view {
namespace {

std::string parent(const std::string& pointer) { return pointer.substr(0, pointer.rfind('/')); }

ConfigObject* find(std::vector<ConfigObject>& objects, const std::string& pointer) {
  const auto found = std::find_if(objects.begin(), objects.end(),
                                  [&](const ConfigObject& object) { return object.pointer == pointer; });
  return found == objects.end() ? nullptr : &*found;
}

void add_types(ConfigObject& object, const io::Key& key) {
  object.what = key.what;
  for (std::size_t i = 0; i < key.choices.size(); ++i)
    object.types.push_back({key.choices[i],
                            i < key.choice_docs.size() ? key.choice_docs[i] : "",
                            key.fallback == nlohmann::json(key.choices[i]).dump(),
                            {}});
}

}  // namespace

std::vector<ConfigObject> config_objects() {
  io::Fields fields = io::Fields::describing();
  train::read_config(fields);
  std::vector<ConfigObject> objects{{"", "a run", "", {}, {}}};
  for (const io::Key& key : fields.keys())
    if (key.type == io::Key::Type::object) objects.push_back({key.pointer, key.doc, "", {}, {}});
  for (const io::Key& key : fields.keys()) {
    ConfigObject& object = *find(objects, parent(key.pointer));
    if (last_name(key.pointer) == "type" && !key.choices.empty()) add_types(object, key);
    const auto type = std::find_if(object.types.begin(), object.types.end(),
                                   [&](const ConfigObject::Type& t) { return t.name == key.of; });
    (type == object.types.end() ? object.keys : type->keys).push_back(key);
  }
  // In the order of their keys, an inner one right behind the one it is in: the order of a page.
  std::vector<ConfigObject> ordered;
  const auto add = [&](const std::string& pointer, const auto& self) -> void {
    const ConfigObject& object = *find(objects, pointer);
    ordered.push_back(object);
    const auto add_inner = [&](const std::vector<io::Key>& keys) {
      for (const io::Key& key : keys)
        if (key.type == io::Key::Type::object) self(key.pointer, self);
    };
    add_inner(object.keys);
    for (const ConfigObject::Type& type : object.types) add_inner(type.keys);
  };
  add("", add);
  return ordered;
}

std::string last_name(const std::string& pointer) { return pointer.substr(pointer.rfind('/') + 1); }

std::string value_text(const io::Key& key) {
  if (!key.choices.empty()) return listed(key.choices, "or");
  std::string text = io::name_of(key.type);
  if (key.size) text = fmt::format("a list of {} numbers", *key.size);
  if (!key.range.empty()) text += (key.size ? ", each " : ", ") + key.range;
  return text;
}

// ---- JSON Schema

namespace {

using Json = nlohmann::ordered_json;

/// A bound as it is written: 1 of an integer, 0.0 of a number.
Json bound(double value) {
  if (value == static_cast<double>(static_cast<std::int64_t>(value))) return static_cast<std::int64_t>(value);
  return value;
}

void put_range(Json& schema, const io::Key& key) {
  if (key.at_least) schema["minimum"] = bound(*key.at_least);
  if (key.more_than) schema["exclusiveMinimum"] = bound(*key.more_than);
  if (key.at_most) schema["maximum"] = bound(*key.at_most);
  if (key.less_than) schema["exclusiveMaximum"] = bound(*key.less_than);
}

Json schema_of(const io::Key& key) {
  using Type = io::Key::Type;
  Json schema{{"description", key.doc}};
  switch (key.type) {
    case Type::integer:
    case Type::number:
      schema["type"] = key.type == Type::integer ? "integer" : "number";
      put_range(schema, key);
      break;
    case Type::boolean:
      schema["type"] = "boolean";
      break;
    case Type::string:
      schema["type"] = "string";
      if (!key.choices.empty()) schema["enum"] = key.choices;
      break;
    case Type::numbers: {
      Json item{{"type", "number"}};
      put_range(item, key);
      schema["type"] = "array";
      schema["items"] = item;
      if (key.size) schema["minItems"] = schema["maxItems"] = *key.size;
      break;
    }
    case Type::strings:
      schema["type"] = "array";
      schema["items"] = {{"type", "string"}};
      break;
    case Type::object:
      break;
  }
  if (!key.fallback.empty()) schema["default"] = Json::parse(key.fallback);
  return schema;
}

/// Builds the schema of each object from the flat list.
class SchemaWriter {
 public:
  explicit SchemaWriter(std::vector<ConfigObject> objects) : objects_(std::move(objects)) {}

  Json schema(const std::string& pointer) {
    const ConfigObject& object = *find(objects_, pointer);
    Json properties = Json::object(), rules = Json::array();
    for (const io::Key& key : object.keys) properties[last_name(key.pointer)] = property(key);
    for (const ConfigObject::Type& type : object.types) {
      add_shared(properties, type);
      rules.push_back(rule(object, type));
    }
    Json schema{{"description", object.doc}, {"type", "object"}, {"additionalProperties", false}};
    schema["properties"] = properties;
    require(schema, object.keys);
    if (!rules.empty()) schema["allOf"] = rules;
    return schema;
  }

 private:
  Json property(const io::Key& key) {
    return key.type == io::Key::Type::object ? schema(key.pointer) : schema_of(key);
  }

  /// Every type's keys are known to the object itself, so that it can be closed; what differs between types is said in
  /// the rule of each.
  void add_shared(Json& properties, const ConfigObject::Type& type) {
    for (const io::Key& key : type.keys) {
      const std::string name = last_name(key.pointer);
      const Json here = property(key);
      if (!properties.contains(name)) {
        properties[name] = here;
      } else if (properties[name] != here) {
        properties[name] = Json{{"description", properties[name].value("description", "")}};
      }
    }
  }

  Json rule(const ConfigObject& object, const ConfigObject::Type& type) {
    Json names = Json::array(), properties = Json::object();
    for (const io::Key& key : object.keys) names.push_back(last_name(key.pointer));
    for (const io::Key& key : type.keys) {
      names.push_back(last_name(key.pointer));
      properties[last_name(key.pointer)] = property(key);
    }
    Json condition{{"properties", {{"type", {{"const", type.name}}}}}};
    if (!type.is_default) condition["required"] = {"type"};
    Json then{{"propertyNames", {{"enum", names}}}, {"properties", properties}};
    require(then, type.keys);
    return {{"if", condition}, {"then", then}};
  }

  void require(Json& schema, const std::vector<io::Key>& keys) {
    for (const io::Key& key : keys) {
      if (is_needed(key)) schema["required"].push_back(last_name(key.pointer));
      if (!key.instead_of.empty())
        schema["oneOf"] =
            Json::array({{{"required", {key.instead_of}}}, {{"required", {last_name(key.pointer)}}}});
    }
  }

  /// An object is needed when it must hold something that has no default.
  bool is_needed(const io::Key& key) {
    if (key.type != io::Key::Type::object) return key.required;
    const ConfigObject& object = *find(objects_, key.pointer);
    const auto any_needed = [&](const std::vector<io::Key>& keys) {
      return std::any_of(keys.begin(), keys.end(),
                         [&](const io::Key& inner) { return is_needed(inner) || !inner.instead_of.empty(); });
    };
    return any_needed(object.keys) ||
           std::any_of(object.types.begin(), object.types.end(), [&](const ConfigObject::Type& type) {
             return type.is_default && any_needed(type.keys);
           });
  }

  std::vector<ConfigObject> objects_;
};

}  // namespace

Json config_schema() {
  Json schema{{"$schema", "http://json-schema.org/draft-07/schema#"}, {"title", "handgrad config"}};
  schema.update(SchemaWriter(config_objects()).schema(""));
  return schema;
}

// ---- The page

namespace {

std::string default_text(const io::Key& key) {
  if (!key.fallback.empty()) return "`" + key.fallback + "`";
  return key.required ? "must be given" : "";
}

std::string doc_text(const io::Key& key) {
  return key.doc + (key.instead_of.empty() ? "" : "; instead of `" + key.instead_of + "`");
}

void put_table(std::string& page, const std::vector<io::Key>& keys) {
  bool any = false;
  for (const io::Key& key : keys) {
    if (key.type == io::Key::Type::object) continue;
    if (!any) page += "| key | value | default | what it is |\n| --- | --- | --- | --- |\n";
    any = true;
    page += fmt::format("| `{}` | {} | {} | {} |\n", io::dotted(key.pointer), value_text(key),
                        default_text(key), doc_text(key));
  }
  if (any) page += "\n";
}

}  // namespace

std::string config_reference() {
  std::string page =
      "# Config reference\n\n"
      "What `handgrad config reference` prints: every key that a config may have. A config is strict JSON, "
      "except that\n"
      "`//` comments are allowed. An unknown key, a repeated key, a value of another type or out of "
      "range ends\n"
      "the program with status 2 before anything is allocated. Paths in a config start from the config's "
      "folder.\n"
      "`--set train.steps=500` overrides one key; `handgrad config show CONFIG` prints every value in force "
      "and where\n"
      "it came from; `handgrad config schema` is the same list for editors.\n\n";
  for (const ConfigObject& object : config_objects()) {
    if (!object.pointer.empty()) page += fmt::format("## {}: {}\n\n", io::dotted(object.pointer), object.doc);
    put_table(page, object.keys);
    for (const ConfigObject::Type& type : object.types) {
      page += fmt::format("`\"type\": \"{}\"`{}: {}\n\n", type.name, type.is_default ? " (default)" : "",
                          type.doc.empty() ? "a " + object.what : type.doc);
      put_table(page, type.keys);
    }
  }
  page.pop_back();
  return page;
}

// ---- Values in force

std::vector<ShownKey> shown_keys(const train::ConfigDocument& document) {
  io::Fields fields = document.fields(io::Purpose::check);
  train::read_config(fields);
  std::vector<ShownKey> shown;
  const auto section = [](const std::string& pointer) { return pointer.substr(0, pointer.find('/', 1)); };
  std::vector<std::string> sections{""};
  for (const io::Key& key : fields.keys())
    if (key.type == io::Key::Type::object && section(key.pointer) == key.pointer)
      sections.push_back(key.pointer);
  for (const std::string& wanted : sections) {
    for (const io::Key& key : fields.keys()) {
      if (key.type == io::Key::Type::object) continue;
      const bool on_top = key.pointer.find('/', 1) == std::string::npos;
      if (on_top != wanted.empty() || (!on_top && section(key.pointer) != wanted)) continue;
      shown.push_back({io::dotted(key.pointer), key.value,
                       key.value.empty() ? "" : train::origin_text(key, fields.file())});
    }
  }
  return shown;
}

}  // namespace handgrad::view
