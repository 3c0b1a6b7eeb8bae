import { NextResponse } from 'next/server'

// The address of the redirect is made of the one that Next thinks it has.
export function GET(request) {
  return NextResponse.redirect(new URL('/there', request.url))
}
