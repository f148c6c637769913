// Shapes, and arrays: numbers that are shared, written and counted.
#include <sstream>

#include "expect.h"
#include "handgrad/core/array.h"
#include "handgrad/core/error.h"

using namespace handgrad;

TEST_CASE("shape: sizes, text, comparison") {
  const Shape s = {2, 4, 6};
  CHECK(s.rank() == 3);
  CHECK(s.numel() == 48);
  CHECK(s.text() == "[2, 4, 6]");
  CHECK(s.at(-1) == 6);
  CHECK(s.at(0) == 2);
  CHECK(s.with_last(1) == Shape{2, 4, 1});
  CHECK(s.without_last() == Shape{2, 4});
  CHECK(Shape{}.numel() == 1);
  CHECK(Shape{}.text() == "[]");
  CHECK(Shape{2, 4} != Shape{2, 4, 1});
  CHECK(Shape{0, 4}.numel() == 0);
  CHECK(Dims(-1) == Shape{-1});
}

TEST_CASE("shape: a dimension that is not there, and too many, are errors") {
  CHECK(expect::message<ShapeError>([] {
          Shape{2, 4}.at(2);
        }) == "shape: dimension must lie in -2..1, got 2\n  shape [2, 4]");
  CHECK(expect::message<ShapeError>([] {
          Shape{2, 4}.at(-3);
        }) == "shape: dimension must lie in -2..1, got -3\n  shape [2, 4]");
  CHECK(expect::message<ShapeError>([] { Shape{}.at(0); }) ==
        "shape: a scalar has no dimensions, got dimension 0\n  shape []");
  CHECK(expect::message<ShapeError>([] { Shape(std::vector<std::int64_t>(7, 1)); }) ==
        "shape: must have at most 6 dimensions, got 7");
  Shape full = {1, 2, 3, 4, 5, 6};
  CHECK_THROWS_AS(full.push_back(7), ShapeError);
}

TEST_CASE("shape: broadcasting by NumPy's rule") {
  struct Case {
    Shape a, b, result;
  };
  for (const Case& c : {Case{{2, 3}, {3}, {2, 3}}, Case{{3}, {2, 3}, {2, 3}}, Case{{2, 1}, {1, 3}, {2, 3}},
                        Case{{}, {2}, {2}}, Case{{1}, {0}, {0}}, Case{{0, 4}, {4}, {0, 4}}}) {
    Shape out;
    CHECK(broadcast_shapes(c.a, c.b, out));
    CHECK(out == c.result);
  }
  Shape out;
  CHECK_FALSE(broadcast_shapes({2, 3}, {2}, out));
  CHECK_FALSE(broadcast_shapes({0}, {2}, out));
}

TEST_CASE("array: handles share numbers, copies do not, and every write makes a version") {
  Array a = Array::of({1, 2, 3, 4}, {2, 2});
  Array shared = a, other = a.copy();
  const Array flat = a.reshape({-1});
  CHECK(a.shares_storage(flat));
  CHECK_FALSE(a.shares_storage(other));
  CHECK_FALSE(a.is_sole_owner());
  CHECK(other.is_sole_owner());

  const std::uint32_t before = a.version();
  shared.mutable_data<float>()[3] = 9;
  CHECK(a.version() == before + 1);
  CHECK(flat.values() == std::vector<double>{1, 2, 3, 9});
  CHECK(other.values() == std::vector<double>{1, 2, 3, 4});

  other.assign(a);
  CHECK(other.values() == a.values());
  other.fill(7);
  CHECK(other.values() == std::vector<double>{7, 7, 7, 7});
  CHECK(a.value(3) == 9);
}

TEST_CASE("array: numbers lie at multiples of 32 bytes, and large ones at multiples of 64") {
  for (const std::int64_t n : {0, 1, 4, 5, 8, 9, 100, 10000}) {
    const Array a({n});
    const auto address = reinterpret_cast<std::uintptr_t>(a.data<float>());
    CHECK(address % (n > 8 ? 64 : 32) == 0);
  }
}

TEST_CASE("array: element types convert, and are asked for by their own name only") {
  const Array a = Array::of({1.5, -2.25, 1e9}, {3}, DType::float64);
  CHECK(a.to(DType::float32).values() == std::vector<double>{1.5, -2.25, 1e9});
  CHECK(a.to(DType::int32).values() == std::vector<double>{1, -2, 1e9});
  CHECK_FALSE(a.to(DType::float64).shares_storage(a));
  CHECK(expect::message<DTypeError>([&] { a.data<float>(); }) ==
        "array: its numbers are float64, they were asked for as float32");
  CHECK(a.bytes() == 24);
}

TEST_CASE("array: no elements at all") {
  const Array a = Array::zeros({0, 4});
  CHECK(a.defined());
  CHECK(a.numel() == 0);
  CHECK(a.copy().shape() == Shape{0, 4});
  CHECK(a.to(DType::float64).values().empty());
  CHECK(a.text() == "[]");
  CHECK(a.reshape({4, 0, 7}).numel() == 0);
  CHECK_FALSE(Array().defined());
  CHECK(Array().text() == "(undefined)");
  CHECK(Array().data<float>() == nullptr);
}

TEST_CASE("array: printed in the shortest digits that read back") {
  std::ostringstream out;
  out << Array::of({0.1, 2, -3.5, 1e-30}, {2, 2});
  CHECK(out.str() == "[[0.1, 2], [-3.5, 1e-30]]");
  CHECK(Array::full({}, 5).text() == "5");
  CHECK(Array::of({NAN, INFINITY, -INFINITY}, {3}).text() == "[nan, inf, -inf]");
  CHECK(Array::of({1.0 / 3}, {1}, DType::float64).text() == "[0.3333333333333333]");
}

TEST_CASE("array: reshape computes one size and throws for what does not fit") {
  const Array a({2, 3, 4});
  CHECK(a.reshape({-1, 4}).shape() == Shape{6, 4});
  CHECK(a.reshape({24}).shape() == Shape{24});
  const std::string start = "reshape: shape must hold the 24 elements of x, got ";
  for (const Shape& wrong : {Shape{5, 5}, Shape{-1, 5}, Shape{-1, -1}, Shape{-2, 12}, Shape{0, -1},
                             Shape{1LL << 32, 1LL << 32, 24}})
    CHECK(expect::message<ShapeError>([&] { a.reshape(wrong); }) == start + wrong.text() + "\n  x [2, 3, 4]");
}

TEST_CASE("array: impossible shapes, wrong counts and positions are errors that say so") {
  CHECK(expect::message<ShapeError>([] {
          Array({2, -1});
        }) == "array: sizes must not be negative, got [2, -1]");
  CHECK(expect::message<ShapeError>([] {
          Array({1LL << 40, 1LL << 40});
        }) == "array: there must be at most 2^44 elements, got shape [1099511627776, 1099511627776]");
  CHECK(expect::message<ShapeError>([] {
          Array::of({1, 2, 3}, {2, 2});
        }) == "array: shape [2, 2] needs 4 values, got 3");
  const Array a = Array::of({1, 2}, {2});
  CHECK(expect::message<IndexError>([&] { a.value(2); }) ==
        "value: position must lie in 0..1, got 2\n  array [2]");
  CHECK(expect::message<ShapeError>([&] { a.item(); }) == "item: must have exactly one element\n  array [2]");
  CHECK(Array::full({1, 1}, 3).item() == 3);
  Array b({3});
  CHECK(expect::message<ShapeError>([&] { b.assign(a); }) ==
        "assign: both arrays must have one shape and one element type\n"
        "  to [3]   from [2]   to float32   from float32");
}
