package store

import "time"

// Both are in snapshotBucket: they are of one computer, and end with it.
var (
	devicesKey         = []byte("devices")
	deviceAuthorityKey = []byte("devices.authority")
)

// Device is the certificate of one device of one person, for some apps. Its private key is
// kept nowhere.
type Device struct {
	ID        string   `json:"id"`
	AccountID string   `json:"account"`
	Name      string   `json:"name"`   // to tell it from others
	Apps      []string `json:"apps"`   // ids
	Digest    []byte   `json:"digest"` // SHA-256 of the certificate
	// Since is the person's, as GroupMember has it; zero of the owner's.
	Since     time.Time `json:"since,omitzero"`
	CreatedAt time.Time `json:"createdAt"`
	NotAfter  time.Time `json:"notAfter"`
}

// DeviceAuthority vouches for certificates of devices.
type DeviceAuthority struct {
	Certificate []byte `json:"certificate"` // DER
	Key         []byte `json:"key"`         // PKCS #8
}

// Devices are those that SaveDevices kept; none at first.
func (s *Store) Devices() (all []Device, err error) {
	_, err = s.load(snapshotBucket, devicesKey, "the record of the certificates of devices", &all)
	return all, err
}

// SaveDevices replaces them.
func (s *Store) SaveDevices(all []Device) error { return s.save(snapshotBucket, devicesKey, all) }

// DeviceAuthority is the one that SaveDeviceAuthority kept; ok is false at first.
func (s *Store) DeviceAuthority() (a DeviceAuthority, ok bool, err error) {
	ok, err = s.load(snapshotBucket, deviceAuthorityKey, "the authority for certificates of devices", &a)
	return a, ok, err
}

// SaveDeviceAuthority replaces it.
func (s *Store) SaveDeviceAuthority(a DeviceAuthority) error {
	return s.save(snapshotBucket, deviceAuthorityKey, a)
}
