// The operations that `explain` knows, each in a file of its own, and what they are asked with.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "handgrad/core/dtype.h"
#include "handgrad/train/explain/sheet.h"

namespace handgrad::train::explain {

/// Numbers of one row, or one number for each feature.
using Row = std::vector<double>;

/// What was typed: numbers and options, none of them checked yet.
struct Request {
  std::string operation = {};                          ///< "layer_norm"
  std::vector<Row> rows = {};                          ///< x
  std::map<std::string, std::vector<Row>> lists = {};  ///< options with numbers: "scale"
  std::map<std::string, std::string> words = {};       ///< options with a word: "form"
  DType dtype = DType::float64;                        ///< that all is computed in
  std::string command = {};  ///< that can be typed again: "handgrad explain layer_norm 2 2 6 6"
};

/// What an operation answers.
struct Explanation {
  Sheet sheet;         ///< for people
  std::string json;    ///< every number in full precision
  std::string python;  ///< lines to paste into PyTorch, with the numbers that are to be expected
};

/// An operation that `explain` knows.
struct Operation {
  const char* name;                  ///< "layer_norm"
  const char* does;                  ///< in a few words
  const char* example;               ///< what may follow its name: "2 2 6 6"
  std::vector<const char*> options;  ///< those of Request::lists and Request::words that it takes
  Explanation (*explain)(const Request& request);  ///< ValueError for a wrong request
};

/// All of them, in the order in which a block uses them.
const std::vector<Operation>& operations();
/// nullptr when there is none of that name.
const Operation* find_operation(const std::string& name);

/// Checks which options came, and that all rows have one width; then asks the operation.
Explanation explain(const Request& request);

// ---- For the operations

/// A wrong call: the rule and what came, the operands one below the other, and what to type instead.
[[noreturn]] void refuse(const Request& request, const std::string& rule,
                         std::vector<std::pair<std::string, std::string>> operands = {},
                         const std::string& advice = {});

/// "1 1 2", rows parted by " / ".
std::string typed(const std::vector<Row>& rows);

/// The one number of an option, or `otherwise` where it was not given; refuses a list, and what is below `least`.
double number_option(const Request& request, const std::string& name, double otherwise, double least);
/// The numbers of an option, one for each of `width`, or `otherwise` for each where it was not given. `of`: what they belong
/// to, "feature of x".
Row row_option(const Request& request, const std::string& name, std::size_t width, double otherwise,
               const char* of);
/// The same as a row for each of `rows`; one row stands for all of them. Where it was not given, each has a 1 and zeros.
std::vector<Row> upstream_option(const Request& request, std::size_t rows, std::size_t width);

}  // namespace handgrad::train::explain
