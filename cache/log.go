package cache

import "errors"

// SaveLog keeps what the action with key k said in its last run, on the shelf Logs, in
// place of an earlier one. It does not wait until the text is on the disk: a log that a
// power cut takes does no harm.
func (d *Dir) SaveLog(k Key, text []byte) error {
	path, err := d.shelfPath(Logs, k.String())
	if err != nil {
		return err
	}
	f, err := d.temp()
	if err != nil {
		return err
	}
	if _, err := f.Write(text); err != nil {
		return errors.Join(d.writeError(err), d.discard(f))
	}
	err = f.Close()
	if err == nil {
		err = d.rename(f.Name(), path)
	}
	if err != nil {
		_ = d.disk.Remove(f.Name())
	}
	return d.writeError(err)
}

// Log returns what the action with key k said in its last run, or an ErrMiss.
func (d *Dir) Log(k Key) ([]byte, error) { return d.Kept(Logs, k.String()) }
