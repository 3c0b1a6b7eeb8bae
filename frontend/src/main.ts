import { mount } from 'svelte';
import App from './App.svelte';
import { bridge } from './lib/bridge';
import '../../assets/style/tokens.css';
import './styles/base.css';

mount(App, { target: document.getElementById('app')!, props: { bridge } });
