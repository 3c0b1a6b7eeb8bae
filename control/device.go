package control

import "context"

// Device is what a browser says it is and runs on, in a word each: "Firefox", "Linux". It
// proves nothing, and tells its person one of their sessions from another.
type Device struct{ Browser, System string }

type deviceKey struct{}

// WithDevice has sessions that are opened with this context be that device's. It comes by
// the context as every way of signing in would have to pass it on, and none looks at it.
func WithDevice(ctx context.Context, d Device) context.Context {
	return context.WithValue(ctx, deviceKey{}, d)
}

func deviceOf(ctx context.Context) Device {
	d, _ := ctx.Value(deviceKey{}).(Device)
	return d
}
