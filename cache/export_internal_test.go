package cache

// Value is what gc orders blobs by, for the test that compares it with other orders.
var Value = value
