// What this folder throws. It never prints, aborts or exits.
#pragma once

#include <stdexcept>
#include <string>
#include <vector>

namespace handgrad::data {

/// A named fact of an error message: "tokens", "4".
struct Detail {
  std::string name;  ///< "tokens"
  std::string text;  ///< "4"
};

/// Anything wrong with a text, a token or a batch. The text reads
///
///     "data/boats.txt": one batch needs 6 windows, the text has 5
///       tokens 11   context_length 2   stride 2
///       try: a smaller batch_size or stride, or random sampling
///
/// with the last two lines only where there is something to say. The parts are fields too.
class Error : public std::runtime_error {
 public:
  /// `subject`: the file or the part that refuses; `message`: the rule that was broken and what came instead;
  /// `details`: what else takes part in the rule; `advice`: what to do, when that is known.
  Error(std::string subject, std::string message, std::vector<Detail> details = {}, std::string advice = {});

  /// @{ As they were given to the constructor.
  const std::string& subject() const { return subject_; }
  const std::string& message() const { return message_; }
  const std::vector<Detail>& details() const { return details_; }
  const std::string& advice() const { return advice_; }
  /// @}

 private:
  std::string subject_, message_, advice_;
  std::vector<Detail> details_;
};

}  // namespace handgrad::data
