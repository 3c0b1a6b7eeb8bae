package trust

import (
	"bytes"
	"context"
	"errors"
	"unsafe"

	"golang.org/x/sys/windows"

	"porchlight/internal/words"
)

// The user's own root store. Windows shows the owner the certificate and asks
// before it is added; there is no way around that question, and should be none.
func open() (windows.Handle, error) {
	name, err := windows.UTF16PtrFromString("ROOT")
	if err != nil {
		return 0, err
	}
	store, err := windows.CertOpenStore(windows.CERT_STORE_PROV_SYSTEM, 0, 0,
		windows.CERT_SYSTEM_STORE_CURRENT_USER, uintptr(unsafe.Pointer(name)))
	if err != nil {
		return 0, words.Errorf("open the store of certificates: %w", err)
	}
	return store, nil
}

// find returns our certificate in the store, nil where it is not; the caller
// frees it.
func (a *Authority) find(store windows.Handle) *windows.CertContext {
	var at *windows.CertContext
	for {
		next, err := windows.CertEnumCertificatesInStore(store, at) // frees at
		if err != nil || next == nil {
			return nil
		}
		if bytes.Equal(unsafe.Slice(next.EncodedCert, next.Length), a.cert.Raw) {
			return next
		}
		at = next
	}
}

func (a *Authority) trusted(context.Context) (bool, error) {
	store, err := open()
	if err != nil {
		return false, err
	}
	defer windows.CertCloseStore(store, 0)
	found := a.find(store)
	if found == nil {
		return false, nil
	}
	return true, windows.CertFreeCertificateContext(found)
}

func (a *Authority) trust(context.Context) error {
	store, err := open()
	if err != nil {
		return err
	}
	defer windows.CertCloseStore(store, 0)
	raw := a.cert.Raw
	cert, err := windows.CertCreateCertificateContext(windows.X509_ASN_ENCODING, &raw[0], uint32(len(raw)))
	if err != nil {
		return words.Errorf("read this computer's authority: %w", err)
	}
	defer windows.CertFreeCertificateContext(cert)
	err = windows.CertAddCertificateContextToStore(store, cert, windows.CERT_STORE_ADD_REPLACE_EXISTING, nil)
	if errors.Is(err, windows.ERROR_CANCELLED) {
		return words.Errorf("Browsers here go on warning, because you answered no. Try again to change that.")
	}
	if err != nil {
		return words.Errorf("the store of certificates refused: %w", err)
	}
	return nil
}

func (a *Authority) distrust(context.Context) error {
	store, err := open()
	if err != nil {
		return err
	}
	defer windows.CertCloseStore(store, 0)
	found := a.find(store)
	if found == nil {
		return nil
	}
	// Frees found, whatever it answers.
	if err := windows.CertDeleteCertificateFromStore(found); err != nil {
		return words.Errorf("the store of certificates refused: %w", err)
	}
	return nil
}
