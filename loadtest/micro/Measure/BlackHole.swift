/// Takes a result where the optimizer cannot see that nobody looks at it, so that the work behind it is done.
@inline(never)
@_optimize(none)
func blackHole<Value: ~Copyable>(_ value: borrowing Value) {}
