// The cart in the browser.
export function total(items) {
  let sum = 0;
  for (const item of items) {
    if (item.count > 0 && item.price > 0) {
      sum += item.count * item.price;
    }
  }
  return sum;
}

/* An empty cart
   costs nothing. */
export const empty = () => total([]);
