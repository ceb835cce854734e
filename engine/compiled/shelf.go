package compiled

import "bonsai/cache"

// What is kept of plans: those of several targets and variables, between which a user
// goes back and forth. One of 100,000 actions has about 16 MB.
const (
	mostFiles = 32
	mostBytes = 256 << 20
)

// Load returns the plan that was saved under a name. One that is missing, or damaged, is
// an error.
func Load(store *cache.Dir, name string) (*Plan, error) {
	b, err := store.Kept(cache.Plans, name)
	if err != nil {
		return nil, err
	}
	return Decode(b)
}

// Save keeps the plan under a name, and drops the oldest if there are too many.
func (p *Plan) Save(store *cache.Dir, name string) error {
	if err := store.Keep(cache.Plans, name, p.Encode()); err != nil {
		return err
	}
	return store.Trim(cache.Plans, mostFiles, mostBytes)
}
