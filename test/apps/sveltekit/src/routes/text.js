export default 'before'
