export default function There() {
  return <h1>There</h1>
}
