package counter

// Weigh says how much tea a customer gets for a sum.
func Weigh(pence int, price int) int {
	if price <= 0 {
		return 0
	}
	return pence / price
}
