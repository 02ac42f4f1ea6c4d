// Which shade a value has: one hue in seven steps, the strongest for what is worst.

import { brief } from "./words.js";

const STEPS = 7;

/**
 * Shades for these values. `worse` is the end that hurts: `low` for rates, `high` for delays. Steps
 * are equal shares of the range, or equal ratios where the range is wide.
 */
export function shades(values, unit, worse) {
  // Neither Math.min(...) nor a sort: ten thousand arguments, or ten thousand comparisons.
  let [low, high] = [Infinity, -Infinity];
  for (const value of values) {
    low = Math.min(low, value);
    high = Math.max(high, value);
  }
  const wide = low > 0 && high / low > 8;
  const place = (value) => (wide ? Math.log(value / low) / Math.log(high / low) : (value - low) / (high - low));
  const step = (value) => (high > low ? Math.min(STEPS - 1, Math.max(0, Math.floor(place(value) * STEPS))) : 0);
  const shade = (n) => (worse === "low" ? STEPS - 1 - n : n);
  const from = (n) => (wide ? low * (high / low) ** (n / STEPS) : low + (high - low) * (n / STEPS));
  const steps = high > low ? STEPS : Number(high === low);
  return {
    of: (value) => (high > low ? shade(step(value)) : 2),
    legend: Array.from({ length: steps }, (_, n) => [steps === 1 ? 2 : shade(n), brief(from(n), unit)]),
  };
}
