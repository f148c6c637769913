// The operations that `explain` knows, one file each, and the request that they answer.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "handgrad/core/dtype.h"
#include "handgrad/view/explain/sheet.h"

namespace handgrad::view::explain {

/// Numbers of one row, or one number for each feature.
using Numbers = std::vector<double>;

/// Numbers and options as they were typed, not yet checked.
struct Request {
  std::string operation = {};                                ///< "layer_norm"
  std::vector<Numbers> rows = {};                            ///< x
  std::map<std::string, std::vector<Numbers>> options = {};  ///< "scale"
  DType dtype = DType::float64;                              ///< of the computation
  std::string command = {};  ///< to repeat the call: "handgrad explain layer_norm 2 2 6 6"
};

/// The answer to a request.
struct Explanation {
  Sheet sheet;         ///< for people
  std::string json;    ///< every number in full precision
  std::string python;  ///< lines to paste into PyTorch, with the numbers to expect
};

/// An operation that `explain` knows.
struct Operation {
  const char* name;                                ///< "layer_norm"
  const char* does;                                ///< in a few words
  const char* example;                             ///< what may follow its name: "2 2 6 6"
  std::vector<const char*> options;                ///< names of those that it takes
  Explanation (*explain)(const Request& request);  ///< ValueError for a wrong request
};

/// An option of operations.
struct Option {
  const char* name;
  const char* placeholder;  ///< "LIST"
  const char* doc;
  bool tensor;  ///< whether its numbers are a tensor of the request's type
};

/// Every option of an operation, in the order of the help.
const std::vector<Option>& options();
/// All operations, in the order in which a block uses them.
const std::vector<Operation>& operations();
/// nullptr when there is none of that name.
const Operation* find_operation(const std::string& name);

/// Checks the options and that all rows have one width, then runs the operation.
Explanation explain(const Request& request);

// ---- For the operations

/// Throws for a wrong call: the rule and what was given, the operands one below the other, and what to type instead.
[[noreturn]] void throw_error(const Request& request, const std::string& rule,
                              std::vector<std::pair<std::string, std::string>> operands = {},
                              const std::string& advice = {});

/// "1 1 2", rows separated by " / ", as users type them.
std::string typed(const std::vector<Numbers>& rows);

/// The single number of an option, or `otherwise` without it. ValueError for a list, or below `least`.
double number_option(const Request& request, const std::string& name, double otherwise, double least);
/// The `width` numbers of an option, or `otherwise` for each without it. `of`: what they belong to, "feature of x".
Numbers row_option(const Request& request, const std::string& name, std::size_t width, double otherwise,
                   const char* of);
/// The upstream gradient as a row for each of `rows`; one row is repeated for all. By default each is a 1 and zeros.
std::vector<Numbers> upstream_option(const Request& request, std::size_t rows, std::size_t width);

}  // namespace handgrad::view::explain
