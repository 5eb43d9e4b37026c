// Logarithm, exponential, sine and cosine in double precision with the same bits on every machine, which C libraries do
// not promise: built from operations that IEEE 754 defines exactly. Errors are a few units in the last place.
#pragma once

namespace borrador {

// Natural logarithm of a normal x > 0.
double same_log(double x);

// e^x; 0 below -708, infinity above 709.
double same_exp(double x);

struct Turn {
  double cosine, sine;
};
// Of an angle below 2^50 in magnitude; beyond, not a number.
Turn same_turn(double angle);

}  // namespace borrador
