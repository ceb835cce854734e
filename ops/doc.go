// Package ops holds what every op shares: the canonical text of its settings.
//
// An op is a value. Its exported fields are its settings, and they are all that it
// depends on beside its inputs; unexported fields (a tensor engine, a number of
// threads) never change a result. An op satisfies engine.Op with standard types
// only, so no package below here knows the engine.
//
// Each family of ops and each file format is a package of its own below this one.
package ops
