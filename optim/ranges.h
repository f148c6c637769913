// Checks of the numbers that optimizers and schedules are made of.
#pragma once

namespace handgrad::optim {

/// ValueError that names `owner` and `key` unless 0 <= value and value is finite.
void require_at_least_0(const char* owner, const char* key, double value);
/// ValueError unless 0 <= value < 1.
void require_below_1(const char* owner, const char* key, double value);

}  // namespace handgrad::optim
