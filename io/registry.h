// Registry: names that a config may give as "type", and the factories of what they name. A registry is a plain table that
// starts with the built-in types; a program adds its own before it reads a config.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "handgrad/core/error.h"
#include "handgrad/io/fields.h"

namespace handgrad::io {

/// What a registry's row says about a product before one is made: Product::Traits where there is such a type.
template <class Product>
struct RowTraits {
  struct Type {};  ///< nothing
};
/// The same for a product that has traits.
template <class Product>
requires requires { typename Product::Traits; }
struct RowTraits<Product> {
  using Type = typename Product::Traits;  ///< the product's
};

/// Makes a `Product` from a config's object and from what its surroundings know (`Args`).
template <class Product, class... Args>
class Registry {
 public:
  /// Reads the keys it knows, "type" excepted, and returns the product. While `fields` only describes, it
  /// runs with default values; unless `fields.building()`, it returns nullptr in place of a large
  /// product.
  using Factory = std::function<std::unique_ptr<Product>(Fields& fields, Args... args)>;

  using Traits = typename RowTraits<Product>::Type;  ///< of a row; most products have none

  /// A type and who makes it.
  struct Row {
    std::string type;    ///< the value of "type" in a config
    Factory factory;     ///< makes it
    std::string doc;     ///< one sentence
    Traits traits = {};  ///< what is known before one is made
  };

  /// `what`: how messages call a product, "norm". `usual`: the type of an object that names none; empty: it
  /// must.
  Registry(std::string what, std::string usual, std::vector<Row> rows = {})
      : what_(std::move(what)), usual_(std::move(usual)), rows_(std::move(rows)) {}

  /// ValueError when the type is empty or known already.
  void add(std::string type, Factory factory, std::string doc = "", Traits traits = {}) {
    if (type.empty() || find(type) != nullptr)
      throw ValueError("registry",
                       "the type of a " + what_ + " must be new and not empty, got \"" + type + "\"");
    rows_.push_back({std::move(type), std::move(factory), std::move(doc), std::move(traits)});
  }

  /// In the order in which they were added.
  const std::vector<Row>& rows() const { return rows_; }
  /// The types, in the order in which they were added.
  std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const Row& row : rows_) names.push_back(row.type);
    return names;
  }
  /// The row of a type; nullptr when there is none.
  const Row* find(std::string_view type) const {
    for (const Row& row : rows_)
      if (row.type == type) return &row;
    return nullptr;
  }
  const std::string& what() const { return what_; }  ///< how messages call a product: "norm"

  /// The product that the object asks for. ConfigError for an unknown type, for what the factory rejects, and
  /// for keys that it did not read. While describing, every factory describes its keys, and there is no
  /// product.
  std::unique_ptr<Product> make(Fields& fields, Args... args) const {
    const std::string type = fields.string("type", type_key());
    if (fields.describing_only()) {
      for (const Row& row : rows_) {
        Fields of_row = fields.described_for(row.type);
        row.factory(of_row, args...);
      }
      return nullptr;
    }
    std::unique_ptr<Product> product = find(type)->factory(fields, args...);
    fields.finish();
    if constexpr (requires { product->set_type(type); })
      if (product) product->set_type(type);
    return product;
  }

 private:
  StringKey type_key() const {
    StringKey key{.doc = "which kind it is", .choices = names(), .what = what_.c_str()};
    for (const Row& row : rows_) key.choice_docs.push_back(row.doc);
    if (!usual_.empty()) key.fallback = usual_;
    return key;
  }

  std::string what_, usual_;
  std::vector<Row> rows_;
};

}  // namespace handgrad::io
