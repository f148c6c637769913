#include "handgrad/data/error.h"

#include <utility>

namespace handgrad::data {
namespace {

std::string full_text(const std::string& subject, const std::string& message,
                      const std::vector<Detail>& details, const std::string& advice) {
  std::string text = subject + ": " + message;
  for (std::size_t i = 0; i < details.size(); ++i)
    text += (i == 0 ? "\n  " : "   ") + details[i].name + " " + details[i].text;
  if (!advice.empty()) text += "\n  try: " + advice;
  return text;
}

}  // namespace

Error::Error(std::string subject, std::string message, std::vector<Detail> details, std::string advice)
    : std::runtime_error(full_text(subject, message, details, advice)),
      subject_(std::move(subject)),
      message_(std::move(message)),
      advice_(std::move(advice)),
      details_(std::move(details)) {}

}  // namespace handgrad::data
