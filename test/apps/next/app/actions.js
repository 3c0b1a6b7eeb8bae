'use server'

import { revalidatePath } from 'next/cache'
import { redirect } from 'next/navigation'

let times = 0

export async function seen() {
  return times
}

export async function count() {
  times++
  revalidatePath('/')
}

export async function leave() {
  redirect('/there')
}
